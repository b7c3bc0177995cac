//! The command against a host that gives the next turn when one has ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::*;

/// The requests of a host, and its controller.
#[derive(Default)]
struct TestHost {
    requests: BTreeMap<String, Value>,
    events: Vec<(u64, Value)>,
    version: u64,
    /// Interceptors whose turns the person may not end.
    forbidden: Vec<&'static str>,
    patches: Vec<Value>,
}

const TARGETS: [&str; 3] = ["a.example.com", "b.example.com", "imperative-eviction.k8s.io"];

impl TestHost {
    fn put(&mut self, name: &str, node: &str, active: usize) {
        self.version += 1;
        let entries = TARGETS.map(|name| json!({"name": name, "message": ""}));
        let request = json!({
            "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "EvictionRequest",
            "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"),
                         "resourceVersion": self.version.to_string()},
            "spec": {"target": {"pod": {"name": format!("pod-{name}"), "uid": name}},
                     "requesters": [{"name": "nodemaintenance.k8s.io"}]},
            "status": {"targetInterceptors": TARGETS.map(|name| json!({"name": name})), "interceptors": entries,
                       "activeInterceptors": [TARGETS[active]],
                       "podInfo": {"nodeName": node, "priority": 0, "podType": "Default"}},
        });
        self.events.push((self.version, request.clone()));
        self.requests.insert(name.to_owned(), request);
    }

    fn answer(&mut self, method: &str, path: &str, query: &str, body: Value) -> (u16, String) {
        let status = |code: u16, reason: &str, message: &str| {
            let details = json!({"name": "n", "kind": "k"});
            let body = json!({"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code, "details": details});
            (code, body.to_string())
        };
        if path.ends_with("/nodemaintenances/rack") {
            let found = json!({"metadata": {"name": "rack"}, "spec": {"stage": "Drain", "lastPodType": "Static"},
                "status": {"nodeStatuses": [{"nodeRef": {"name": "n"}}]}});
            return (200, found.to_string());
        }
        if path.contains("/nodemaintenances/") {
            return status(404, "NotFound", "no");
        }
        if method == "PATCH" {
            self.patches.push(body.clone());
            let name = path.split('/').rev().nth(1).unwrap_or_default().to_owned();
            let Some(request) = self.requests.get(&name).cloned() else {
                return status(404, "NotFound", "no");
            };
            if request["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] {
                return status(409, "Conflict", "changed");
            }
            let ended = &body["status"]["interceptors"][0];
            let interceptor = ended["name"].as_str().unwrap_or_default();
            if self.forbidden.contains(&interceptor) {
                return status(403, "Forbidden", "you may not\u{1b}[2J");
            }
            assert!(ended["completionTime"].is_string(), "{ended}");
            let at = TARGETS.iter().position(|target| *target == interceptor).unwrap_or_default();
            self.put(&name, "n", at + 1);
            return (200, request.to_string());
        }
        if query.contains("watch=true") {
            let from = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion="));
            let from: u64 = from.and_then(|version| version.parse().ok()).unwrap_or_default();
            let later = self.events.iter().filter(|(version, _)| *version > from);
            let lines =
                later.map(|(_, object)| format!("{}\n", json!({"type": "MODIFIED", "object": object})));
            return (200, lines.collect());
        }
        let items: Vec<_> = self.requests.values().collect();
        let list = json!({"apiVersion": "coordination.k8s.io/v1alpha1", "kind": "EvictionRequestList",
            "metadata": {"resourceVersion": self.version.to_string()}, "items": items});
        (200, list.to_string())
    }
}

/// What the command says and does on this host.
async fn run_on(
    host: TestHost,
    maintenance: &str,
    is_dry_run: bool,
) -> (Result<usize, String>, Vec<EndTurnsLine>, TestHost) {
    let host = Arc::new(Mutex::new(host));
    let served = host.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let served = served.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
            let query = parts.uri.query().unwrap_or_default();
            let mut host = served.lock().unwrap_or_else(PoisonError::into_inner);
            let (code, body) = host.answer(parts.method.as_str(), parts.uri.path(), query, body);
            let mut response = http::Response::new(kube::client::Body::from(body.into_bytes()));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
            Ok::<_, kube::Error>(response)
        }
    });
    let client = Client::new(service, "default");
    let mut lines = Vec::new();
    let ended = end_turns(&client, maintenance, is_dry_run, &mut |line| lines.push(line)).await;
    let host = std::mem::take(&mut *host.lock().unwrap_or_else(PoisonError::into_inner));
    (ended.map_err(|error| format!("{error:#}")), lines, host)
}

fn host() -> TestHost {
    let mut host = TestHost::default();
    host.put("1", "n", 0);
    host.put("2", "n", 1);
    host.put("3", "elsewhere", 0);
    host.put("4", "n", 2);
    host
}

#[tokio::test]
async fn each_turn_of_the_pods_of_the_maintenance_ends_and_no_other() {
    let (ended, lines, host) = run_on(host(), "rack", false).await;
    assert_eq!(ended, Ok(3));
    let mut said: Vec<_> = lines.iter().map(|line| format!("{line:?}")).collect();
    said.sort();
    let line = |name: &str, pod: u8| {
        format!("Change(\"ended the turn of {name} for pod shop/pod-{pod} on node n\")")
    };
    let mut expected = [line("a.example.com", 1), line("b.example.com", 1), line("b.example.com", 2)];
    expected.sort();
    assert_eq!(said, expected);
    let active = |name: &str| host.requests[name]["status"]["activeInterceptors"][0].clone();
    assert_eq!(["1", "2", "4"].map(active), [TARGETS[2]; 3].map(Value::from));
    assert_eq!(active("3"), TARGETS[0], "the pod of another maintenance");
    assert!(host.patches.iter().all(|patch| patch["metadata"]["uid"].is_string()), "{:?}", host.patches);
}

#[tokio::test]
async fn a_dry_run_says_all_turns_and_writes_nothing() {
    let (ended, lines, host) = run_on(host(), "rack", true).await;
    assert_eq!((ended, host.patches.len()), (Ok(3), 0));
    let first =
        "would end the turn of a.example.com for pod shop/pod-1 on node n, then that of b.example.com";
    assert!(lines.contains(&EndTurnsLine::Change(first.to_owned())), "{lines:?}");
}

/// Who may end the turn of one interceptor alone ends that one; the host's words do not move the cursor.
#[tokio::test]
async fn a_turn_that_the_person_may_not_end_is_a_problem_and_the_others_end() {
    let (ended, lines, host) =
        run_on(TestHost { forbidden: vec![TARGETS[0]], ..host() }, "rack", false).await;
    assert!(ended.is_err_and(|error| error.contains("problems: 1")), "{lines:?}");
    let problem = "pod shop/pod-1 on node n: the turn of a.example.com was not ended: you may not [2J";
    assert!(lines.contains(&EndTurnsLine::Problem(problem.to_owned())), "{lines:?}");
    assert_eq!(host.requests["2"]["status"]["activeInterceptors"][0], TARGETS[2]);
}

#[tokio::test]
async fn a_maintenance_that_is_not_there_is_named() {
    let (ended, _, host) = run_on(host(), "rack-8", false).await;
    assert_eq!(ended, Err("there is no NodeMaintenance rack-8".to_owned()));
    assert!(host.patches.is_empty());
}
