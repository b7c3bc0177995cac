//! The host's audit log: all requests by one clock, independent of Drydock. Requests that come straight to our API server
//! are in that one's log alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// One request as the host logged it when it was answered.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoggedRequest {
    /// The same in each server that the request passes.
    #[serde(rename = "auditID")]
    pub id: String,
    /// `create`, `patch`, `delete` and so on.
    pub verb: String,
    /// Path and query.
    #[serde(rename = "requestURI")]
    pub uri: String,
    /// The user.
    pub user: LoggedUser,
    /// The object that it is about.
    pub object_ref: ObjectRef,
    /// Its response.
    pub response_status: LoggedResponse,
    /// When the host received it.
    #[serde(rename = "requestReceivedTimestamp")]
    pub received: Option<Timestamp>,
    /// When it was answered.
    #[serde(rename = "stageTimestamp")]
    pub answered: Option<Timestamp>,
    /// The body, where the policy asks for it.
    pub request_object: Value,
    /// The answer's body, where the policy asks for it.
    pub response_object: Value,
    /// Annotations, such as the decision of the authorizer.
    pub annotations: BTreeMap<String, String>,
}

/// The user.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct LoggedUser {
    /// The name that the host authenticated.
    pub username: String,
    /// The UID that a service account's token carries.
    pub uid: String,
}

/// The object that it is about.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// Empty for the core group.
    pub api_group: String,
    /// Plural.
    pub resource: String,
    /// Empty for the resource itself.
    pub subresource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
}

/// Its response.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct LoggedResponse {
    /// HTTP status.
    pub code: u16,
    /// Why it was refused.
    pub message: String,
}

impl LoggedRequest {
    /// Whether it succeeded.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.response_status.code)
    }

    /// Whether the authorizer refused it, rather than admission or the server behind the aggregator.
    pub fn is_forbidden(&self) -> bool {
        self.annotations.get("authorization.k8s.io/decision").is_some_and(|decision| decision == "forbid")
    }

    /// Whether it is about this resource, written `pods` or `pods/eviction`.
    pub fn is_about(&self, resource: &str) -> bool {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        self.object_ref.resource == resource && self.object_ref.subresource == subresource
    }
}

/// The group of users whose requests are logged in full, by the host and by our API server.
pub const AUDITED: &str = "audited";

/// The rules of our API server's audit policy, and of the host's: requests of audited users in full, and metadata of
/// requests for an object of that name.
pub fn rules() -> [Value; 2] {
    let named = serde_json::json!({"group": "*", "resources": ["*"], "resourceNames": [AUDITED]});
    [
        serde_json::json!({"level": "RequestResponse", "userGroups": [AUDITED]}),
        serde_json::json!({"level": "Metadata", "resources": [named]}),
    ]
}

/// The group of the accounts that our programs have in a host.
const OURS: &str = "system:serviceaccounts:drydock-system";

/// The host's audit policy: what the judges read of pods and of our own kinds, and little else; and all requests of our
/// programs, if those are to be judged.
pub(super) fn policy(with_programs: bool) -> Value {
    let [whole, named] = rules();
    let ours = ["evictionrequests", "evictionrequests/status", "nodemaintenances", "nodemaintenances/status"];
    let level = if with_programs { "Metadata" } else { "None" };
    serde_json::json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
        "rules": [
            whole, named,
            // What our API server asks about its callers.
            {"level": "Request", "verbs": ["create"], "omitStages": ["RequestReceived"],
             "resources": [{"group": "authorization.k8s.io", "resources": ["subjectaccessreviews"]}]},
            // The body names the pod's UID.
            {"level": "Request", "verbs": ["create"], "omitStages": ["RequestReceived"],
             "resources": [{"group": "", "resources": ["pods/eviction"]}]},
            // The answer is the pod as it was last: its UID, its node, its priority.
            {"level": "RequestResponse", "verbs": ["delete"], "omitStages": ["RequestReceived"],
             "resources": [{"group": "", "resources": ["pods"]}]},
            {"level": "Metadata", "verbs": ["create", "update", "patch", "delete"], "omitStages": ["RequestReceived"],
             "resources": [{"group": "coordination.k8s.io", "resources": ours}]},
            {"level": level, "userGroups": [OURS], "omitStages": ["RequestReceived"]},
            {"level": "None"},
        ],
    })
}

/// All events of the requests that carried this `Audit-Id`, in order.
pub fn events(log: &Path, id: &str) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(events.filter(|event| event["auditID"] == id).collect())
}

/// All requests that have been answered so far.
pub fn requests(log: &Path) -> Result<Vec<LoggedRequest>> {
    let text = std::fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
    // A line may be cut short: the last one while it is written, and one of a server that was killed.
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// The same of several logs. A request that is in more than one of them, as it went through the aggregator, is given once,
/// as the first of them has it.
pub fn requests_of(logs: &[PathBuf]) -> Result<Vec<LoggedRequest>> {
    let mut all = Vec::new();
    let mut known = BTreeSet::new();
    for log in logs {
        let new = requests(log)?.into_iter().filter(|request| !known.contains(&request.id));
        let new: Vec<LoggedRequest> = new.collect();
        known.extend(new.iter().map(|request| request.id.clone()));
        all.extend(new);
    }
    Ok(all)
}

/// UIDs of pods whose eviction our controller manager was granted more than once: it evicts a pod once, whatever fails
/// meanwhile.
pub fn evicted_twice<'l>(requests: impl IntoIterator<Item = &'l LoggedRequest>) -> Vec<String> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for request in requests.into_iter().filter(|r| r.is_about("pods/eviction") && r.succeeded()) {
        if request.user.username == EVICTOR {
            let uid = request.request_object["deleteOptions"]["preconditions"]["uid"].as_str();
            *counts.entry(uid.unwrap_or("an eviction without a UID")).or_default() += 1;
        }
    }
    counts.into_iter().filter(|(_, count)| *count > 1).map(|(uid, _)| uid.to_owned()).collect()
}

/// The account that evicts.
const EVICTOR: &str = "system:serviceaccount:drydock-system:drydock-controller-manager";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_read_and_one_that_was_cut_short_is_not() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let log = dir.path().join("audit.log");
        let line = r#"{"kind":"Event","verb":"create","user":{"username":"u","groups":["g"]},"objectRef":{"resource":"pods","namespace":"n","name":"p","apiVersion":"v1","subresource":"eviction"},"responseStatus":{"metadata":{},"code":429},"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z","stageTimestamp":"2026-01-02T03:04:05.5Z"}"#;
        std::fs::write(&log, format!("{line}\n{}", &line[..90]))?;
        let read = requests(&log)?;
        assert_eq!(read.len(), 1);
        let request = &read[0];
        assert!(request.is_about("pods/eviction") && !request.is_about("pods") && !request.succeeded());
        assert_eq!(request.received, Some("2026-01-02T03:04:05.000006Z".parse()?));
        assert_eq!(request.answered, Some("2026-01-02T03:04:05.5Z".parse()?));
        Ok(())
    }

    #[test]
    fn a_uid_that_our_controllers_evicted_twice_is_found() {
        let eviction = |user: &str, uid: &str, code: u16| LoggedRequest {
            user: LoggedUser { username: user.to_owned(), uid: String::new() },
            object_ref: ObjectRef {
                resource: "pods".into(),
                subresource: "eviction".into(),
                ..ObjectRef::default()
            },
            response_status: LoggedResponse { code, message: String::new() },
            request_object: serde_json::json!({"deleteOptions": {"preconditions": {"uid": uid}}}),
            ..LoggedRequest::default()
        };
        let refused_first = [eviction(EVICTOR, "1", 429), eviction(EVICTOR, "1", 201)];
        let beside_others = [eviction(EVICTOR, "2", 201), eviction("kubectl", "2", 201)];
        let twice = [eviction(EVICTOR, "3", 201), eviction(EVICTOR, "3", 201)];
        assert_eq!(evicted_twice(refused_first.iter().chain(&beside_others).chain(&twice)), ["3"]);
    }

    #[test]
    fn a_request_that_two_servers_logged_is_given_once() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let line = |id: &str, verb: &str| format!("{{\"auditID\":\"{id}\",\"verb\":\"{verb}\"}}\n");
        let (host, ours) = (dir.path().join("host.log"), dir.path().join("ours.log"));
        std::fs::write(&host, line("a", "create") + &line("b", "get"))?;
        std::fs::write(&ours, line("b", "list") + &line("c", "patch"))?;
        let verbs: Vec<String> =
            requests_of(&[host, ours])?.into_iter().map(|request| request.verb).collect();
        assert_eq!(verbs, ["create", "get", "patch"]);
        Ok(())
    }
}
