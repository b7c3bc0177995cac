//! Our audit log beside the host's own: the same requests leave the same events.

use std::path::Path;

use anyhow::{Context, Result};
use drydock_testkit::host::audit::{AUDITED, events};
use drydock_testkit::kinds::node_maintenance;
use drydock_testkit::wait::{allowed, until_some};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::shared::{LIMIT, Shared, shared};

/// A kind of ours, and one of the host's that it is compared with.
const OURS: (&str, &str) = ("/apis/coordination.k8s.io/v1alpha1/nodemaintenances", "NodeMaintenance");
const HOSTS: (&str, &str) = ("/apis/node.k8s.io/v1/runtimeclasses", "RuntimeClass");

/// What is asked of both; `{}` stands for the path of the kind, and its object for the body `object`.
struct Step {
    name: &'static str,
    method: Method,
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: Body,
}

enum Body {
    None,
    Object,
    Text(&'static str),
}

const JSON: (&str, &str) = ("content-type", "application/json");
const MERGE: (&str, &str) = ("content-type", "application/merge-patch+json");
const NAMED: &str = "{}/audited";

fn steps() -> Vec<Step> {
    let step = |name, method, path, headers, body| Step { name, method, path, headers, body };
    vec![
        step("create", Method::POST, "{}?fieldManager=m", &[JSON], Body::Object),
        step("again", Method::POST, "{}", &[JSON], Body::Object),
        step("unreadable", Method::POST, "{}", &[("content-type", "text/plain")], Body::Text("text")),
        step("get", Method::GET, NAMED, &[("accept", "application/yaml")], Body::None),
        step("list", Method::GET, "{}?fieldSelector=metadata.name%3Daudited", &[], Body::None),
        step("missing", Method::GET, "{}/audited-missing", &[], Body::None),
        step("watch", Method::GET, "{}?timeoutSeconds=1&watch=true", &[], Body::None),
        step("patch", Method::PATCH, NAMED, &[MERGE], Body::Text(r#"{"metadata":{"labels":{"a":"b"}}}"#)),
        step("timeout", Method::GET, "{}/audited?timeout=soon", &[], Body::None),
        step("forbidden", Method::GET, NAMED, &[("impersonate-user", "nobody")], Body::None),
        step("path", Method::GET, "/nowhere", &[("impersonate-user", "nobody")], Body::None),
        step(
            "delete",
            Method::DELETE,
            NAMED,
            &[JSON],
            Body::Text(r#"{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}"#),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_requests_leave_the_same_events_as_in_the_host() -> Result<()> {
    let shared = shared().await?;
    let [host, direct] = audited(shared).await?;
    let logs = (shared.drydock.host.audit_log(), shared.drydock.audit_log());
    let mut wrong = Vec::new();
    for way in ["direct", "proxied"] {
        let client = if way == "direct" { &direct } else { &host };
        for step in steps() {
            let asked = format!("{}-of-host-{way}", step.name);
            let expected = ask(&host, &step, HOSTS, &asked, &logs.0).await?;
            // These are answered by the host itself.
            if way == "proxied" && matches!(step.name, "path" | "timeout" | "forbidden") {
                continue;
            }
            let id = format!("{}-{way}", step.name);
            let found = ask(client, &step, OURS, &id, &logs.1).await?;
            if found != expected {
                wrong.push(format!("{id}: {found:#?} and not {expected:#?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let log = std::fs::read_to_string(&logs.1)?;
    assert!(!log.contains("BEGIN CERTIFICATE") && !log.contains("Bearer"), "a secret is logged");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_logged_as_the_host_logs_them() -> Result<()> {
    let shared = shared().await?;
    let nobody = |url: &str| -> Result<Client> {
        let mut config = kube::Config::new(url.parse()?);
        config.accept_invalid_certs = true;
        config.headers.push((http::header::AUTHORIZATION, "Bearer s3cret-token".parse()?));
        Ok(Client::try_from(config)?)
    };
    let logs = (shared.drydock.host.audit_log(), shared.drydock.audit_log());
    let step = Step { name: "token", method: Method::GET, path: NAMED, headers: &[], body: Body::None };
    let expected = ask(&nobody(&shared.drydock.host.url)?, &step, HOSTS, "token-of-host", &logs.0).await?;
    let found = ask(&nobody(&shared.drydock.url())?, &step, OURS, "token-of-ours", &logs.1).await?;
    assert_eq!(found, expected);
    assert!(!std::fs::read_to_string(&logs.1)?.contains("s3cret-token"), "a token is logged");
    Ok(())
}

/// Clients to the host and to our port, of one user of whom everything is logged.
async fn audited(shared: &Shared) -> Result<[Client; 2]> {
    let kubectl = shared.kubectl();
    let rules = ["--verb=*", "--resource=runtimeclasses.node.k8s.io,nodemaintenances.coordination.k8s.io"];
    kubectl.ok(&["create", "clusterrole", AUDITED, rules[0], rules[1]]).await?;
    let act = ["--verb=impersonate", "--resource=users"];
    kubectl.ok(&["create", "clusterrole", "audited-acts", act[0], act[1]]).await?;
    // The maintenance selects nodes by their labels.
    let delete = ["--verb=delete", "--resource=nodes"];
    kubectl.ok(&["create", "clusterrole", "audited-deletes", delete[0], delete[1]]).await?;
    for role in [AUDITED, "audited-acts", "audited-deletes"] {
        let [role, group] = [format!("--clusterrole={role}"), format!("--group={AUDITED}")];
        let name = role.trim_start_matches("--clusterrole=");
        kubectl.ok(&["create", "clusterrolebinding", name, &role, &group]).await?;
    }
    let host = shared.drydock.host.client().await?;
    for about in [
        json!({"verb": "impersonate", "resource": "users", "name": "nobody"}),
        json!({"verb": "delete", "resource": "nodes"}),
    ] {
        let spec = json!({"user": "audited-user", "groups": [AUDITED], "resourceAttributes": about});
        let review = json!({"metadata": {}, "spec": spec});
        allowed(&host, &serde_json::from_value(review)?, LIMIT).await?;
    }
    let kubeconfig = shared.drydock.host.kubeconfig("audited-user", &[AUDITED])?;
    let file = Kubeconfig::read_from(&kubeconfig)?;
    let host = drydock_testkit::host::client_of(&kubeconfig).await?;
    Ok([host, shared.drydock.direct_as(file).await?])
}

/// Does a step and returns the events that it left, with what differs between kinds replaced.
async fn ask(client: &Client, step: &Step, kind: (&str, &str), id: &str, log: &Path) -> Result<Vec<Value>> {
    let mut request = Request::builder().method(&step.method).uri(step.path.replace("{}", kind.0));
    for (name, value) in step.headers {
        request = request.header(*name, *value);
    }
    let body = match step.body {
        Body::None => Vec::new(),
        Body::Object => object(kind).to_string().into_bytes(),
        Body::Text(text) => text.into(),
    };
    let request = request.header("audit-id", id).header("user-agent", "auditor/1").body(body.into())?;
    let answer = client.send(request).await?;
    answer.into_body().collect().await.context("the answer breaks off")?;
    let late = || format!("{id}: the log of {} does not tell the end", log.display());
    let ended = |events: &Vec<Value>| {
        let unknown = events.iter().any(|event| event["user"] == json!({}));
        unknown || events.iter().any(|event| event["stage"] == "ResponseComplete")
    };
    let events = until_some(LIMIT, late, async || Ok(Some(events(log, id)?).filter(ended))).await?;
    Ok(events.into_iter().map(|event| normal(event, kind)).collect())
}

fn object(kind: (&str, &str)) -> Value {
    if kind == OURS {
        return node_maintenance(AUDITED, "Idle", &["nowhere"]);
    }
    json!({"apiVersion": "node.k8s.io/v1", "kind": kind.1, "metadata": {"name": AUDITED}, "handler": "none"})
}

/// Without what differs from request to request and from kind to kind: times, ids, the kind's own names, and of each
/// body all but what it is.
fn normal(event: Value, kind: (&str, &str)) -> Value {
    let (path, name) = kind;
    let parts: Vec<&str> = path.split('/').collect();
    let mut text = event.to_string().replace(path, "PATH").replace(name, "KIND");
    text = text.replace(&parts[2..=3].join("/"), "GROUP/VERSION");
    for (at, word) in [(4, "RESOURCE"), (2, "GROUP")] {
        text = text.replace(parts[at], word);
    }
    let mut event: Value = serde_json::from_str(&text).unwrap_or_default();
    if event["objectRef"]["apiVersion"] == parts[3] {
        event["objectRef"]["apiVersion"] = "VERSION".into();
    }
    // The host names its internal version of the options, which no client can send.
    if event["requestObject"]["kind"] == "DeleteOptions" {
        event["requestObject"]["apiVersion"].take();
    }
    for field in ["auditID", "requestReceivedTimestamp", "stageTimestamp"] {
        let there = event[field].is_string();
        event[field] = there.into();
    }
    // The aggregator puts itself before the client.
    event["sourceIPs"] = event["sourceIPs"][0].clone();
    event["responseStatus"]["details"]["uid"].take();
    for body in ["requestObject", "responseObject"] {
        let mut found = event[body].take();
        if found["kind"] == "Status" {
            found["details"]["uid"].take();
        } else if found.get("kind").is_some() {
            found = json!([found["apiVersion"], found["kind"], found["metadata"]["name"]]);
        }
        event[body] = found;
    }
    event
}
