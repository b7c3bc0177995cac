//! What the audit log says of requests.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use drydock_machinery::ApiError;
use drydock_server::admission::{Admission, AdmissionAttributes};
use drydock_server::audit::{self, Audit, AuditDestination, AuditMetrics, Mode, file};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::fixture::{Port, Settings, code};

/// Events that are longer have no bodies.
const MAX_EVENT_BYTES: usize = 10_000;

const GADGETS: &str = "/apis/test.io/v1/namespaces/ns/gadgets";

/// A port whose requests are logged, and the log.
struct Logged {
    port: Port,
    path: PathBuf,
    _dir: tempfile::TempDir,
}

impl Logged {
    async fn open(rules: Value) -> Self {
        Self::open_with(json!({"rules": rules}), |_| true).await
    }

    async fn open_with(policy: Value, rule: super::fixture::Rule) -> Self {
        Self::open_as(policy, rule, audit::Options::default()).await
    }

    async fn open_as(policy: Value, rule: super::fixture::Rule, options: audit::Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let options = audit::Options { longest: Some(MAX_EVENT_BYTES), ..options };
        let audit = Some(opened_as(&dir, policy, path.clone(), options));
        let admission: Vec<Arc<dyn Admission>> = vec![Arc::new(Panics)];
        let port = Port::open(Settings { rule, audit, admission, ..Settings::default() }).await;
        Self { port, path, _dir: dir }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap()
    }

    fn events(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn send(&self, line: &str, headers: &[(&str, &str)]) -> u16 {
        let client = self.port.clients.issue("caller", "callers");
        code(&self.port.send(Some(&client), line, headers).await)
    }

    /// Sends an object, in a request that says how long it is.
    async fn send_body(&self, line: &str, content_type: &str, body: &str) -> u16 {
        let length = body.len().to_string();
        let tail = format!("{length}\r\n\r\n{body}");
        self.send(line, &[("content-type", content_type), ("content-length", &tail)]).await
    }
}

/// Admits nothing that is named for it.
struct Panics;

#[async_trait]
impl Admission for Panics {
    async fn admit(&self, attributes: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        attributes.audit.annotate("test.io/seen", attributes.operation.as_str());
        assert_ne!(attributes.object_name(), "panics", "as it was told");
        Ok(())
    }
}

pub fn opened(
    dir: &tempfile::TempDir,
    policy: Value,
    path: PathBuf,
    mode: Mode,
    longest: usize,
) -> Arc<Audit> {
    let longest = Some(longest);
    opened_as(dir, policy, path, audit::Options { mode, longest, ..Default::default() })
}

/// Opens the log at this path, by this policy, with the rest of these options.
fn opened_as(
    dir: &tempfile::TempDir,
    mut policy: Value,
    path: PathBuf,
    options: audit::Options,
) -> Arc<Audit> {
    policy["apiVersion"] = "audit.k8s.io/v1".into();
    policy["kind"] = "Policy".into();
    let policy_file = dir.path().join("policy.yaml");
    std::fs::write(&policy_file, policy.to_string()).unwrap();
    let out = file::Options { path, max_age: 0, max_backups: 0, max_size: 100, compress: false };
    let out = Some(AuditDestination::File(out));
    let options = audit::Options { policy_file: Some(policy_file), out, ..options };
    Audit::open(&options, AuditMetrics::default()).unwrap().unwrap()
}

#[tokio::test]
async fn an_event_tells_who_asked_for_what_and_how_it_ended() {
    let logged = Logged::open(json!([{"level": "Metadata"}])).await;
    let headers = [
        ("user-agent", "tester/1"),
        ("audit-id", "my-id"),
        ("x-forwarded-for", "10.1.1.1"),
        ("authorization", "Bearer s3cret"),
    ];
    assert_eq!(logged.send(&format!("GET {GADGETS}/x?pretty=true"), &headers).await, 404);
    let events = logged.events();
    let received = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "my-id",
        "stage": "RequestReceived", "requestURI": format!("{GADGETS}/x?pretty=true"), "verb": "get",
        "user": {
            "username": "caller", "groups": ["callers", "system:authenticated"],
            // The fingerprint of the certificate.
            "extra": events[0]["user"]["extra"],
        },
        "sourceIPs": ["10.1.1.1", "127.0.0.1"], "userAgent": "tester/1",
        "objectRef": {"resource": "gadgets", "namespace": "ns", "name": "x", "apiGroup": "test.io", "apiVersion": "v1"},
        "requestReceivedTimestamp": events[0]["requestReceivedTimestamp"],
        "stageTimestamp": events[0]["requestReceivedTimestamp"],
    });
    assert_eq!(events[0], received);
    let mut complete = received;
    complete["stage"] = "ResponseComplete".into();
    complete["stageTimestamp"] = events[1]["stageTimestamp"].clone();
    complete["responseStatus"] = json!({
        "metadata": {}, "status": "Failure", "message": "gadgets.test.io \"x\" not found", "reason": "NotFound",
        "details": {"name": "x", "group": "test.io", "kind": "gadgets"}, "code": 404,
    });
    complete["annotations"] =
        json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "by rule"});
    assert_eq!(events[1..], [complete]);
    assert!(!logged.text().contains("s3cret"));
}

#[tokio::test]
async fn bodies_are_logged_as_far_as_the_level_says() {
    let rules = json!([
        {"level": "RequestResponse", "verbs": ["create", "list", "delete"], "omitStages": ["RequestReceived"]},
        {"level": "Request", "verbs": ["patch"], "omitManagedFields": true, "omitStages": ["RequestReceived"]},
    ]);
    let logged = Logged::open_with(json!({"rules": rules, "omitManagedFields": true}), |_| true).await;
    let object = json!({
        "apiVersion": "test.io/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": {"size": 1},
    });
    let created = logged.send_body(&format!("POST {GADGETS}"), "application/json", &object.to_string()).await;
    assert_eq!(created, 201);
    let yaml = "apiVersion: test.io/v1\nkind: Gadget\nspec: {size: 2}\n";
    let line = format!("PATCH {GADGETS}/a?fieldManager=m&force=true");
    assert_eq!(logged.send_body(&line, "application/apply-patch+yaml", yaml).await, 200);
    assert_eq!(logged.send(&format!("GET {GADGETS}"), &[("accept", "application/yaml")]).await, 200);
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
    let deleted =
        logged.send_body(&format!("DELETE {GADGETS}/a"), "application/json", &options.to_string()).await;
    assert_eq!(deleted, 200);
    let events = logged.events();
    let [create, patch, list, delete] = events.as_slice() else { panic!("{events:#?}") };
    assert_eq!(create["objectRef"]["name"], "a");
    assert_eq!(create["requestObject"]["spec"], json!({"size": 1, "color": "red"}), "with its defaults");
    assert_eq!(create["responseObject"]["metadata"]["managedFields"], Value::Null);
    assert_eq!(create["responseObject"]["metadata"]["generation"], 1);
    assert_eq!(
        (&patch["requestObject"]["spec"]["size"], &patch["responseObject"]),
        (&json!(2), &Value::Null)
    );
    assert_eq!(list["responseObject"]["kind"], "GadgetList");
    assert_eq!(list["responseObject"]["items"][0]["spec"]["size"], 2);
    assert_eq!(delete["requestObject"], options);
    assert_eq!(delete["responseObject"]["status"], "Success");
    assert_eq!(delete["responseStatus"]["status"], "Success");
}

#[tokio::test]
async fn no_body_forges_an_event() {
    let rules = json!([{"level": "Request", "verbs": ["patch"], "omitStages": ["RequestReceived"]}]);
    let logged = Logged::open(rules).await;
    let event = json!({"kind": "Event", "apiVersion": "audit.k8s.io/v1", "user": {"username": "admin"}});
    let forged = format!("{{\"metadata\":\r\n{event}\n}}");
    let path = format!("PATCH {GADGETS}/absent");
    assert_eq!(logged.send_body(&path, "application/merge-patch+json", &forged).await, 404);
    let [logged] = logged.events().try_into().unwrap_or_else(|events| panic!("{events:#?}"));
    assert_eq!(
        (&logged["user"]["username"], &logged["requestObject"]["metadata"]),
        (&json!("caller"), &event)
    );
}

#[tokio::test]
async fn strangers_and_those_who_act_as_others_are_told_apart() {
    let not_the_admin = |spec: &Value| spec["resourceAttributes"]["name"] != "admin";
    let rules = json!([{"level": "Metadata"}]);
    let policy = json!({"rules": rules, "omitStages": ["RequestReceived"]});
    let logged = Logged::open_with(policy, not_the_admin).await;
    let line = format!("GET {GADGETS}");
    assert_eq!(logged.send(&line, &[("impersonate-user", "jane")]).await, 200);
    assert_eq!(logged.send(&line, &[("impersonate-user", "admin")]).await, 403);
    assert_eq!(code(&logged.port.send(None, &line, &[("authorization", "Bearer bad")]).await), 401);
    assert_eq!(code(&logged.port.send(None, &format!("{line}?timeout=x"), &[]).await), 400);
    let events = logged.events();
    let [jane, admin, token, timeout] = events.as_slice() else { panic!("{events:#?}") };
    assert_eq!(jane["user"]["username"], "caller");
    assert_eq!(jane["impersonatedUser"], json!({"username": "jane", "groups": ["system:authenticated"]}));
    assert_eq!((&admin["responseStatus"]["code"], &admin["impersonatedUser"]), (&json!(403), &Value::Null));
    for (event, code) in [(token, 401), (timeout, 400)] {
        assert_eq!((&event["user"], &event["stage"]), (&json!({}), &json!("ResponseStarted")));
        assert_eq!(event["responseStatus"]["code"], code);
    }
}

#[tokio::test]
async fn a_watch_is_logged_when_it_begins_and_when_it_ends() {
    let rules = json!([
        {"level": "None", "nonResourceURLs": ["/healthz*"]},
        {"level": "RequestResponse", "omitStages": ["RequestReceived"]},
    ]);
    let logged = Logged::open(rules).await;
    assert_eq!(logged.send("GET /healthz", &[]).await, 200);
    assert_eq!(logged.send(&format!("GET {GADGETS}?watch=true&timeoutSeconds=1"), &[]).await, 200);
    let audit = logged.events();
    let stages: Vec<_> = audit.iter().map(|event| (&event["stage"], &event["verb"])).collect();
    let watch = json!("watch");
    assert_eq!(stages[0], (&json!("ResponseStarted"), &watch));
    assert!(audit.iter().all(|event| event["responseStatus"] == json!({"metadata": {}, "code": 200})));
}

#[tokio::test]
async fn a_request_that_cannot_be_logged_is_refused_in_strict_mode() {
    let dir = tempfile::tempdir().unwrap();
    let policy = json!({"rules": [{"level": "Metadata"}]});
    let full = PathBuf::from("/dev/full");
    let audit = Some(opened(&dir, policy.clone(), full.clone(), Mode::BlockingStrict, MAX_EVENT_BYTES));
    let port = Port::open(Settings { audit, ..Settings::default() }).await;
    let answer = port.send(None, &format!("GET {GADGETS}"), &[]).await;
    assert!(code(&answer) == 500 && answer.contains("failed to store audit event"), "{answer}");
    let audit = Some(opened(&dir, policy, full, Mode::Blocking, 10));
    let port = Port::open(Settings { audit, ..Settings::default() }).await;
    assert_eq!(code(&port.send(None, &format!("GET {GADGETS}"), &[]).await), 200);
}

#[tokio::test]
async fn a_panic_is_told_in_place_of_an_end() {
    let logged = Logged::open(json!([{"level": "Metadata"}])).await;
    let object = json!({"metadata": {"name": "panics"}, "spec": {"size": 1}}).to_string();
    assert_eq!(logged.send_body(&format!("POST {GADGETS}"), "application/json", &object).await, 500);
    let events = logged.events();
    let [received, panic] = events.as_slice() else { panic!("{events:#?}") };
    assert_eq!((&received["stage"], &panic["stage"]), (&json!("RequestReceived"), &json!("Panic")));
    assert_eq!(panic["annotations"]["test.io/seen"], "CREATE");
    let status = &panic["responseStatus"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(500), &json!("InternalError")));
    assert!(status["message"].as_str().unwrap().starts_with("APIServer panic'd: "), "{status}");
}

/// A client that is gone when its write is done would leave none of it in the log.
#[tokio::test]
async fn the_end_of_a_request_is_told_when_its_client_is_gone() {
    let rules = json!([{"level": "Metadata", "omitStages": ["ResponseStarted"]}]);
    let logged = Logged::open(rules).await;
    let mut stream = logged.port.connect(None, "http/1.1").await;
    let head = format!("POST {GADGETS} HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{{");
    stream.write_all(head.as_bytes()).await.unwrap();
    while logged.events().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(stream);
    while logged.events().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(logged.events()[1]["stage"], "ResponseComplete");
}

#[tokio::test]
async fn the_bodies_of_an_event_that_is_too_long_are_left_out() {
    let rules = json!([{"level": "RequestResponse", "omitStages": ["RequestReceived"]}]);
    let logged = Logged::open(rules).await;
    let object =
        |color: &str| json!({"metadata": {"name": "a"}, "spec": {"size": 1, "color": color}}).to_string();
    let line = format!("POST {GADGETS}?dryRun=All");
    for color in ["blue", &"x".repeat(MAX_EVENT_BYTES)] {
        assert_eq!(logged.send_body(&line, "application/json", &object(color)).await, 201);
    }
    let events = logged.events();
    let [whole, cut] = events.as_slice() else { panic!("{events:#?}") };
    let truncated = |event: &Value| event["annotations"]["audit.k8s.io/truncated"] == "true";
    assert!(!truncated(whole) && whole["requestObject"]["spec"]["color"] == "blue");
    assert!(truncated(cut) && cut["requestObject"].is_null() && cut["responseObject"].is_null());
    assert_eq!(cut["objectRef"]["name"], "a");
}

/// Who reached the port wrote, and tried to read, without a trace: the shipped policy logs the controllers alone, and
/// kube-apiserver sees none of it.
#[tokio::test]
async fn a_direct_write_leaves_a_trace_whatever_the_policy_says() {
    let (rules, options) = (
        json!({"rules": [{"level": "None"}]}),
        audit::Options { direct_requests: true, ..Default::default() },
    );
    let logged =
        Logged::open_as(rules, |asked| asked["resourceAttributes"]["name"] != "secret", options).await;
    let proxy = logged.port.proxies.issue("front-proxy", "");
    let as_jane = [("x-remote-user", "jane")];
    let delete = format!("DELETE {GADGETS}/x");
    let secret = format!("GET {GADGETS}/secret");
    for (line, answer) in [(&delete, 404), (&secret, 403)] {
        assert_eq!(code(&logged.port.send(Some(&proxy), line, &as_jane).await), answer);
    }
    assert_eq!(logged.send(&format!("GET {GADGETS}/x"), &[]).await, 404);
    assert_eq!(logged.text(), "", "neither what came through the front proxy, nor a read that is allowed");
    assert_eq!(logged.send(&delete, &[]).await, 404);
    assert_eq!(logged.send(&secret, &[]).await, 403);
    assert_eq!(code(&logged.port.send(None, &secret, &[("authorization", "Bearer bad")]).await), 401);
    let told: Vec<Value> = logged
        .events()
        .into_iter()
        .map(|event| {
            json!([
                event["level"],
                event["stage"],
                event["verb"],
                event["user"]["username"],
                event["responseStatus"]["code"]
            ])
        })
        .collect();
    let wanted = json!([
        ["Metadata", "ResponseComplete", "delete", "caller", 404],
        ["Metadata", "ResponseComplete", "get", "caller", 403],
        ["Metadata", "ResponseStarted", "get", null, 401],
    ]);
    assert_eq!(json!(told), wanted);
    assert_eq!(logged.events()[1]["annotations"]["authorization.k8s.io/decision"], "forbid");
}
