//! Reads a policy file: strictly, so that nothing in it is silently ignored, and with Kubernetes' errors
//! (k8s.io/apiserver pkg/audit/policy/reader.go, pkg/apis/audit/validation).

use std::path::Path as FilePath;

use drydock_machinery::decode::{self, Format};
use drydock_machinery::field::{self, Error, ErrorList, Path};
use drydock_machinery::kind::Names;
use drydock_machinery::names::dns1123_subdomain;
use drydock_machinery::schema::common::{list, meta_schema, object, optional, text};
use drydock_machinery::schema::{Field, ListType, Schema, Shape};
use serde_json::Value;

use super::policy::AuditPolicy;

const NAMES: Names = Names {
    group: "audit.k8s.io",
    version: "v1",
    kind: "Policy",
    plural: "policies",
    singular: "policy",
    short_names: &[],
    categories: &[],
    namespaced: false,
};
const LEVELS: [&str; 4] = ["None", "Metadata", "Request", "RequestResponse"];
const STAGES: [&str; 4] = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"];

/// Reads the policy in a file.
///
/// # Errors
/// What is wrong with it, and the file.
pub fn load(file: &FilePath) -> Result<AuditPolicy, String> {
    let shown = file.display();
    let text =
        std::fs::read(file).map_err(|error| format!("failed to read file path \"{shown}\": {error}"))?;
    read(&text).map_err(|why| format!("{why}: from file {shown}"))
}

/// Reads a policy in YAML or JSON.
///
/// # Errors
/// What is wrong with it.
pub fn read(text: &[u8]) -> Result<AuditPolicy, String> {
    let undecodable = |error: drydock_machinery::ApiError| format!("failed decoding: {error}");
    let value = decode::decode_value(text, Format::Yaml).map_err(undecodable)?;
    check_type(&value)?;
    let decoded = decode::decode(text, Format::Yaml, &NAMES, &schema()).map_err(undecodable)?;
    if !decoded.strict_errors.is_empty() {
        return Err(format!("strict decoding error: {}", decoded.strict_errors.join(", ")));
    }
    let value = decoded.object.into_value();
    let errors = errors(&value);
    if let Some(why) = field::aggregate(&errors) {
        return Err(why);
    }
    let policy: AuditPolicy =
        serde_json::from_value(value).map_err(|error| format!("failed decoding: {error}"))?;
    if policy.rules.is_empty() {
        return Err("loaded illegal policy with 0 rules".to_owned());
    }
    Ok(policy)
}

fn check_type(value: &Value) -> Result<(), String> {
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version == NAMES.api_version() && kind == NAMES.kind {
        return Ok(());
    }
    let expected = format!("it must have apiVersion {} and kind {}", NAMES.api_version(), NAMES.kind);
    Err(format!("failed decoding: no kind {kind:?} is registered for version {version:?}: {expected}"))
}

fn schema() -> Schema {
    let group = vec![text("group", 1, ""), texts("resources", 2), texts("resourceNames", 3)];
    let rule = vec![
        text("level", 1, ""),
        texts("users", 2),
        texts("userGroups", 3),
        texts("verbs", 4),
        objects("resources", 5, group),
        texts("namespaces", 6),
        texts("nonResourceURLs", 7),
        texts("omitStages", 8),
        boolean("omitManagedFields", 9),
    ];
    let policy = vec![
        text("apiVersion", 0, ""),
        text("kind", 0, ""),
        optional("metadata", 1, meta_schema()),
        objects("rules", 2, rule),
        texts("omitStages", 3),
        boolean("omitManagedFields", 4),
    ];
    object("", "", policy)
}

fn texts(name: &'static str, number: u32) -> Field {
    optional(name, number, list("", Schema::new("", Shape::String), ListType::Atomic))
}

fn boolean(name: &'static str, number: u32) -> Field {
    optional(name, number, Schema::new("", Shape::Boolean))
}

fn objects(name: &'static str, number: u32, fields: Vec<Field>) -> Field {
    optional(name, number, list("", object("", "", fields), ListType::Atomic))
}

fn errors(policy: &Value) -> ErrorList {
    let mut errors = stages(&policy["omitStages"], &Path::new("omitStages"));
    for (index, rule) in items(&policy["rules"]).enumerate() {
        errors.extend(of_rule(rule, &Path::new("rules").index(index)));
    }
    errors
}

fn of_rule(rule: &Value, path: &Path) -> ErrorList {
    let at = path.child("level");
    let mut errors = match rule["level"].as_str().unwrap_or_default() {
        "" => vec![Error::required(at, "")],
        level if LEVELS.contains(&level) => Vec::new(),
        level => {
            let mut levels = LEVELS;
            levels.sort_unstable();
            vec![Error::not_supported(at, level, &levels)]
        }
    };
    let at = path.child("nonResourceURLs");
    errors.extend(urls(&rule["nonResourceURLs"], &at));
    for group in items(&rule["resources"]) {
        errors.extend(of_group(group, &path.child("resources")));
    }
    errors.extend(stages(&rule["omitStages"], &path.child("omitStages")));
    let is_given = |field: &str| items(&rule[field]).next().is_some();
    if is_given("nonResourceURLs") && (is_given("resources") || is_given("namespaces")) {
        let detail = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(Error::invalid(at, rule["nonResourceURLs"].clone(), detail));
    }
    errors
}

fn urls(list: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, url) in items(list).enumerate() {
        let (at, url) = (path.index(index), url.as_str().unwrap_or_default());
        if url == "*" {
            continue;
        }
        if !url.starts_with('/') {
            let detail = "non-resource URL rules must begin with a '/' character";
            errors.push(Error::invalid(at.clone(), url, detail));
        }
        let mut before_the_last = url.chars();
        before_the_last.next_back();
        if before_the_last.any(|c| c == '*') {
            let detail = "non-resource URL wildcards '*' must be the final character of the rule";
            errors.push(Error::invalid(at, url, detail));
        }
    }
    errors
}

fn of_group(group: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = group["group"].as_str().unwrap_or_default();
    let wrong = if matches!(name, "" | "*") { Vec::new() } else { dns1123_subdomain(name) };
    if !wrong.is_empty() {
        errors.push(Error::invalid(path.child("group"), name, wrong.join(",")));
    }
    let names = &group["resourceNames"];
    if items(names).next().is_some() && items(&group["resources"]).next().is_none() {
        let detail = "using resourceNames requires at least one resource";
        errors.push(Error::invalid(path.child("resourceNames"), names.clone(), detail));
    }
    errors
}

fn stages(list: &Value, path: &Path) -> ErrorList {
    let unknown =
        items(list).enumerate().filter(|(_, stage)| !stage.as_str().is_some_and(|s| STAGES.contains(&s)));
    let detail = format!("allowed stages are {}", STAGES.join(","));
    unknown.map(|(index, stage)| Error::invalid(path.index(index), stage.clone(), &*detail)).collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(rest: &str) -> String {
        let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rest}");
        match read(text.as_bytes()) {
            Ok(policy) => panic!("it was read: {policy:?}"),
            Err(why) => why,
        }
    }

    #[test]
    fn a_policy_is_read_whole() {
        let text = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
metadata: {name: p}
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  users: [ann]
  userGroups: [g]
  verbs: [create]
  resources: [{group: g.io, resources: ["things/*"], resourceNames: [x]}]
  namespaces: [ns, ""]
  omitStages: [ResponseStarted]
  omitManagedFields: false
- level: None
  nonResourceURLs: ["/healthz*", "*"]
"#;
        let Ok(policy) = read(text.as_bytes()) else { panic!("{:?}", read(text.as_bytes())) };
        assert_eq!((policy.rules.len(), policy.omit_managed_fields), (2, true));
        assert_eq!(policy.rules[0].resources[0].resource_names, ["x"]);
        assert_eq!(policy.rules[0].omit_managed_fields, Some(false));
        assert_eq!(policy.rules[1].non_resource_urls, ["/healthz*", "*"]);
    }

    #[test]
    fn what_is_wrong_is_said_as_kubernetes_says_it() {
        for (policy, why) in [
            ("rules: []", "loaded illegal policy with 0 rules"),
            ("rules: [{}]", "rules[0].level: Required value"),
            (
                "rules: [{level: All}]",
                r#"rules[0].level: Unsupported value: "All": supported values: "Metadata", "None", "Request", "RequestResponse""#,
            ),
            (
                "rules: [{level: None}]\nomitStages: [Never]",
                r#"omitStages[0]: Invalid value: "Never": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic"#,
            ),
            (
                "rules: [{level: None, nonResourceURLs: [a, '/a*b', '/c*'], namespaces: [n]}]",
                r#"[rules[0].nonResourceURLs[0]: Invalid value: "a": non-resource URL rules must begin with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: "/a*b": non-resource URL wildcards '*' must be the final character of the rule, rules[0].nonResourceURLs: Invalid value: ["a","/a*b","/c*"]: rules cannot apply to both regular resources and non-resource URLs]"#,
            ),
            (
                "rules: [{level: None, resources: [{resourceNames: [x]}]}]",
                r#"rules[0].resources.resourceNames: Invalid value: ["x"]: using resourceNames requires at least one resource"#,
            ),
            (
                "rules: [{level: None, verb: [get]}]",
                r#"strict decoding error: unknown field "rules[0].verb""#,
            ),
        ] {
            assert_eq!(refused(policy), why);
        }
        assert!(
            refused("rules: [{level: None, resources: [{group: g.io/v1}]}]").contains("RFC 1123 subdomain")
        );
        assert!(refused("rules: 3").starts_with("failed decoding: "));
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        for text in ["", "kind: Policy", "apiVersion: v1\nkind: Pod", "a: [", "\0"] {
            let Err(why) = read(text.as_bytes()) else { panic!("{text:?} was read") };
            assert!(why.starts_with("failed decoding: "), "{text:?}: {why}");
        }
    }
}
