//! Compares what deploy/base grants to our API server and our controller manager with what they did: reads the audit logs of hosts in which they ran, and
//! fails on a rule of their roles that was never used, and on a request of theirs that the host's authorizer forbade.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use drydock_testkit::drydock::PROGRAMS;
use drydock_testkit::host::{audit, repository};
use serde::Deserialize;
use serde_json::Value;

const ROLES: [&str; 2] = ["rbac-apiserver.yaml", "rbac-controller-manager.yaml"];
/// Not of deploy/: the host's own roles, to which deploy/ binds drydock-apiserver.
const HOSTS_ROLES: [&str; 2] = ["system:auth-delegator", "extension-apiserver-authentication-reader"];

/// Compares the roles of deploy/base with what our API server and our controller manager did.
#[derive(Parser)]
struct Arguments {
    /// Folder with the audit logs of hosts
    #[arg(value_name = "DIR")]
    logs: PathBuf,
}

/// One thing that a rule of a role grants: verb, group, resource with its subresource, and a name if the rule has names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    verb: String,
    group: String,
    resource: String,
    name: Option<String>,
}

/// A document of a manifest, as far as it grants something.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Manifest {
    kind: String,
    metadata: RoleMetadata,
    rules: Vec<RoleRule>,
    role_ref: RoleRef,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RoleMetadata {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RoleRef {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RoleRule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
    verbs: Vec<String>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let granted = granted()?;
    let mut unused = granted.clone();
    let mut forbidden = BTreeMap::<String, usize>::new();
    let mut seen = 0_usize;
    for log in std::fs::read_dir(&arguments.logs).with_context(|| arguments.logs.display().to_string())? {
        for request in audit::requests(&log?.path())? {
            let Some(program) = program(&request.user.username) else {
                continue;
            };
            seen += 1;
            if request.is_forbidden() {
                *forbidden.entry(description(program, &request)).or_default() += 1;
                continue;
            }
            for (program, right) in used(program, &request) {
                unused.retain(|(of, granted)| *of != program || !granted.is_used_by(&right));
            }
        }
    }
    ensure!(seen > 0, "no request of our programs in {}", arguments.logs.display());
    for (program, right) in &unused {
        println!("never used: {}", what_to_do(program, right));
    }
    for (what, times) in &forbidden {
        println!("forbidden {times} times: {what}");
    }
    println!(
        "{} rights granted, {} never used; {seen} requests, {} kinds forbidden",
        granted.len(),
        unused.len(),
        forbidden.len()
    );
    Ok(if unused.is_empty() && forbidden.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Everything that the roles of deploy/base grant to our programs.
fn granted() -> Result<BTreeSet<(&'static str, Right)>> {
    let mut granted = BTreeSet::new();
    for file in ROLES {
        let path = repository().join("deploy/base").join(file);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for document in serde_yaml_ng::Deserializer::from_str(&text) {
            let manifest = Manifest::deserialize(document).with_context(|| path.display().to_string())?;
            if manifest.kind.ends_with("RoleBinding") {
                let role = manifest.role_ref.name.as_str();
                ensure!(
                    program(role).is_some() || HOSTS_ROLES.contains(&role),
                    "a role that this program does not know: {role}"
                );
            }
            if manifest.kind.ends_with("Role") {
                let Some(program) = PROGRAMS.into_iter().find(|name| manifest.metadata.name == *name) else {
                    bail!("a role of no program: {}", manifest.metadata.name);
                };
                granted.extend(manifest.rules.iter().flat_map(rights).map(|right| (program, right)));
            }
        }
    }
    Ok(granted)
}

fn rights(rule: &RoleRule) -> Vec<Right> {
    let names: Vec<Option<String>> = match rule.resource_names.is_empty() {
        true => vec![None],
        false => rule.resource_names.iter().cloned().map(Some).collect(),
    };
    let mut rights = Vec::new();
    for verb in &rule.verbs {
        for group in &rule.api_groups {
            for resource in &rule.resources {
                rights.extend(names.iter().map(|name| Right {
                    verb: verb.clone(),
                    group: group.clone(),
                    resource: resource.clone(),
                    name: name.clone(),
                }));
            }
        }
    }
    rights
}

/// Returns the rights that a request which the host allowed has used; for a review by drydock-apiserver also the
/// right that it asked about, for any user.
fn used(program: &'static str, request: &audit::LoggedRequest) -> Vec<(&'static str, Right)> {
    let about = &request.object_ref;
    let itself = Right {
        verb: request.verb.clone(),
        group: about.api_group.clone(),
        resource: resource(&about.resource, &about.subresource),
        name: Some(about.name.clone()),
    };
    let asked =
        request.is_about("subjectaccessreviews").then(|| asked_about(&request.request_object)).flatten();
    std::iter::once((program, itself)).chain(asked).collect()
}

fn asked_about(review: &Value) -> Option<(&'static str, Right)> {
    let spec = &review["spec"];
    let text = |field: &str| spec["resourceAttributes"][field].as_str().unwrap_or_default().to_owned();
    let right = Right {
        verb: text("verb"),
        group: text("group"),
        resource: resource(&text("resource"), &text("subresource")),
        name: Some(text("name")),
    };
    Some((program(spec["user"].as_str()?)?, right))
}

fn resource(resource: &str, subresource: &str) -> String {
    match subresource {
        "" => resource.to_owned(),
        _ => format!("{resource}/{subresource}"),
    }
}

impl Right {
    /// Whether `used` needs this right; a right without a name is one to all names.
    fn is_used_by(&self, used: &Right) -> bool {
        let is_named = self.name.is_none() || self.name == used.name;
        is_named && (&self.verb, &self.group, &self.resource) == (&used.verb, &used.group, &used.resource)
    }
}

/// The program of a service account, by its user name or its role's name.
fn program(user: &str) -> Option<&'static str> {
    let name = user.rsplit(':').next().unwrap_or(user);
    PROGRAMS.into_iter().find(|program| *program == name)
}

/// The file of a program's roles.
fn file(program: &str) -> String {
    format!("deploy/base/rbac-{}.yaml", program.trim_start_matches("drydock-"))
}

/// What is to be changed for a right that was never used.
fn what_to_do(program: &str, right: &Right) -> String {
    let Right { verb, group, resource, name } = right;
    let named = name.as_ref().map(|name| format!(" resourceNames {name:?}")).unwrap_or_default();
    format!(
        "{program} may {verb} {resource:?} of the group {group:?}{named}. Take this right out of {}, \
         or write a live test in which {program} uses it",
        file(program)
    )
}

fn description(program: &str, request: &audit::LoggedRequest) -> String {
    let about = &request.object_ref;
    let resource = resource(&about.resource, &about.subresource);
    format!(
        "{program}: {} {resource} {}/{}: {}. Add verbs: [{}], apiGroups: [{:?}], resources: [{resource:?}] to a role in {}, or \
         do not ask for it",
        request.verb,
        about.namespace,
        about.name,
        request.response_status.message,
        request.verb,
        about.api_group,
        file(program)
    )
}
