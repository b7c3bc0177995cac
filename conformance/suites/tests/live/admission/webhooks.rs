//! Mutating and validating webhooks.

use anyhow::{Result, ensure};
use drydock_testkit::wait::retry;
use http::Method;
use serde_json::{Value, json};

use super::webhook_server::WebhookServer;
use super::{Answer, ComparedKind, compared_kinds, configure, in_force, send};
use crate::shared::{LIMIT, Namespace, shared};

const NAME: &str = "0a3c1a1c-7f3e-4f5e-9d0e-0123456789ab";

/// A configuration: for each webhook its label `case`, and what is special about it.
pub fn configuration(kind: &str, namespace: &str, hooks: &[(&str, Value)]) -> Value {
    let hooks = hooks.iter().map(|(case, special)| {
        let mut hook = json!({
            "name": format!("{case}.example.com"),
            "rules": [{
                "apiGroups": ["coordination.k8s.io"], "apiVersions": ["*"], "operations": ["*"],
                "resources": ["evictionrequests", "evictionrequests/status", "leases"], "scope": "Namespaced",
            }],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "objectSelector": {"matchLabels": {"case": case}},
            "sideEffects": "None", "timeoutSeconds": 5, "admissionReviewVersions": ["v1"],
        });
        for (field, value) in special.as_object().into_iter().flatten() {
            hook[field] = value.clone();
        }
        hook
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": namespace}, "webhooks": hooks.collect::<Vec<_>>(),
    })
}

async fn created(namespace: &Namespace, compared: &ComparedKind, query: &str, case: &str) -> Result<Answer> {
    let object = compared.object(NAME, json!({"case": case}));
    send(&namespace.client, Method::POST, &format!("{}{query}", compared.uri), Some(&object)).await
}

/// Both answers are the same refusal.
async fn refused_alike(namespace: &Namespace, query: &str, case: &str, words: &str) -> Result<()> {
    let [ours, hosts] = compared_kinds(namespace);
    let (left, right) =
        (created(namespace, &ours, query, case).await?, created(namespace, &hosts, query, case).await?);
    let (left, right) = (ours.normal(&left), hosts.normal(&right));
    ensure!(left == right, "{case}: we answer\n{left:#?}\nand the host\n{right:#?}");
    ensure!(
        left.0 >= 400 && left.2["message"].as_str().is_some_and(|it| it.contains(words)),
        "{case}: {left:#?}"
    );
    Ok(())
}

async fn no_longer_refused(namespace: &Namespace, case: &str) -> Result<()> {
    for compared in compared_kinds(namespace) {
        let late = || format!("{case}: still refused");
        retry(
            LIMIT,
            late,
            async || Ok(created(namespace, &compared, "?dryRun=All", case).await?.code == 201),
        )
        .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_validating_webhook_refuses_our_kind_as_it_refuses_a_lease() -> Result<()> {
    let namespace = shared().await?.namespace("admission-validating").await?;
    let server = WebhookServer::start("hook.admission-validating.svc").await?;
    let other = WebhookServer::start("other.example.com").await?;
    let closed =
        json!({"url": "https://127.0.0.1:1/closed", "caBundle": server.client_config("")["caBundle"]});
    let mut unknown_ca = server.client_config("fine");
    unknown_ca["caBundle"] = other.client_config("")["caBundle"].clone();
    let mut service = server.client_config("deny");
    service["url"] = Value::Null;
    service["service"] =
        json!({"namespace": "admission-validating", "name": "hook", "port": server.port, "path": "/deny"});
    let mut nowhere = service.clone();
    nowhere["service"]["name"] = json!("nowhere");
    let ports = json!([{"port": server.port}]);
    configure(&namespace, &json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook", "namespace": "admission-validating"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": ports},
    }))
    .await?;
    let at = |path: &str| json!({"clientConfig": server.client_config(path)});
    let hooks = [
        ("deny", at("deny")),
        ("details", at("details")),
        ("silent", at("silent")),
        ("patching", at("patching")),
        ("garbage", at("garbage")),
        ("absent", at("absent")),
        ("other", at("other")),
        ("boom", at("boom")),
        ("bang", at("bang")),
        ("away", at("away")),
        ("closed", json!({"clientConfig": closed})),
        ("stranger", json!({"clientConfig": unknown_ca})),
        ("service", json!({"clientConfig": service})),
        ("nowhere", json!({"clientConfig": nowhere})),
        ("slow", json!({"clientConfig": server.client_config("never"), "timeoutSeconds": 1})),
        ("effects", json!({"clientConfig": server.client_config("fine"), "sideEffects": "NoneOnDryRun"})),
        (
            "condition",
            json!({"clientConfig": server.client_config("deny"), "matchConditions": [
            {"name": "broken", "expression": "object.spec.nothing == 1"}]}),
        ),
        (
            "unmet",
            json!({"clientConfig": server.client_config("deny"), "matchConditions": [
            {"name": "never", "expression": "request.operation == 'CONNECT'"}]}),
        ),
        ("ignored", json!({"clientConfig": server.client_config("boom"), "failurePolicy": "Ignore"})),
        ("warn", at("warn")),
    ];
    configure(&namespace, &configuration("ValidatingWebhookConfiguration", "admission-validating", &hooks))
        .await?;
    in_force(&namespace, &json!({"case": "deny"}), "not today").await?;

    for (case, words) in [
        ("deny", "admission webhook \"deny.example.com\" denied the request: not today"),
        ("details", "denied the request: Teapot"),
        ("silent", "denied the request without explanation"),
        ("patching", "validating webhook may not return response.patch"),
        ("absent", "webhook response was absent"),
        ("boom", "an error on the server (\"boom\") has prevented the request from succeeding"),
        ("bang", "an error on the server (\"unknown\") has prevented the request from succeeding"),
        ("away", "the server could not find the requested resource"),
        ("closed", "dial tcp 127.0.0.1:1: connect: connection refused"),
        ("stranger", "x509: certificate signed by unknown authority"),
        ("service", "not today"),
        ("nowhere", "service \"nowhere\" not found"),
        ("slow", "context deadline exceeded"),
        ("condition", "expression 'object.spec.nothing == 1' resulted in error: no such key: nothing"),
    ] {
        refused_alike(&namespace, "", case, words).await?;
        refused_alike(&namespace, "?dryRun=All", case, words).await?;
    }
    for case in ["garbage", "other"] {
        let [ours, _] = compared_kinds(&namespace);
        let answer = created(&namespace, &ours, "", case).await?;
        ensure!(answer.code == 500, "{case}: {answer:?}");
    }
    for case in ["unmet", "ignored", "effects"] {
        no_longer_refused(&namespace, case).await?;
    }
    for compared in compared_kinds(&namespace) {
        let answer = created(&namespace, &compared, "?dryRun=All", "warn").await?;
        ensure!(answer.warnings == ["299 - \"mind the gap\""], "{answer:?}");
    }
    removals_are_shown(&namespace, &server).await
}

/// Creates, status changes and removals are put to the webhook as the host puts its own.
async fn removals_are_shown(namespace: &Namespace, server: &WebhookServer) -> Result<()> {
    server.asked("warn");
    for compared in compared_kinds(namespace) {
        let answer = created(namespace, &compared, "?fieldManager=me", "warn").await?;
        ensure!(answer.code == 201, "{answer:?}");
        let uri = format!("{}/{NAME}", compared.uri);
        let change = json!({"metadata": {"labels": {"more": "x"}}});
        send(&namespace.client, Method::PATCH, &uri, Some(&change)).await?;
        let options = json!({"propagationPolicy": "Background", "preconditions": {}});
        send(&namespace.client, Method::DELETE, &uri, Some(&options)).await?;
    }
    // The controller of our kind writes its status meanwhile, or when the object is gone already.
    let (status, asked): (Vec<Value>, Vec<Value>) =
        server.asked("warn").into_iter().partition(|review| review["request"]["subResource"] == "status");
    ensure!(status.iter().all(|review| review["request"]["operation"] == "UPDATE"), "{status:?}");
    let of_leases = |review: &Value| review["request"]["resource"]["resource"] == "leases";
    let (of_host, mut of_ours): (Vec<Value>, Vec<Value>) = asked.into_iter().partition(of_leases);
    // A change that lost the race against such a write is put to the webhook again.
    of_ours.dedup_by(|again, first| again["request"]["operation"] == first["request"]["operation"]);
    let [ours, hosts] = compared_kinds(namespace);
    for (left, right) in of_ours.iter().zip(&of_host) {
        let shown = |compared: &ComparedKind, review: &Value| {
            let mut request = review["request"].clone();
            for of_kind in
                ["uid", "object", "oldObject", "kind", "requestKind", "resource", "requestResource"]
            {
                request[of_kind] = json!(request[of_kind].is_null());
            }
            compared.normal(&Answer { code: 0, warnings: Vec::new(), body: request }).2
        };
        ensure!(shown(&ours, left) == shown(&hosts, right), "{left:#}\n{right:#}");
        ensure!(left["request"]["object"]["kind"].is_null() == right["request"]["object"]["kind"].is_null());
    }
    ensure!(of_ours.len() == 3 && of_host.len() == 3, "{of_ours:?}\n{of_host:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutating_webhook_changes_our_kind_as_it_changes_a_lease() -> Result<()> {
    let namespace = shared().await?.namespace("admission-mutating").await?;
    let server = WebhookServer::start("hook.admission-mutating.svc").await?;
    let at = |path: &str| json!({"clientConfig": server.client_config(path)});
    let mut twice = at("count");
    twice["reinvocationPolicy"] = json!("IfNeeded");
    let counting = |name: &str, special: &Value| {
        let mut hook = special.clone();
        hook["name"] = json!(format!("{name}.count.example.com"));
        ("count", hook)
    };
    let hooks = [
        ("patching", at("patching")),
        ("missing", at("missing")),
        ("undecodable", at("undecodable")),
        ("invalid", at("invalid")),
        ("unknown", at("unknown")),
        ("deny", at("deny")),
        ("boom", at("boom")),
        counting("a", &twice),
        counting("b", &at("count")),
        counting("c", &twice),
    ];
    configure(&namespace, &configuration("MutatingWebhookConfiguration", "admission-mutating", &hooks))
        .await?;
    in_force(&namespace, &json!({"case": "deny"}), "not today").await?;

    for (case, words) in [
        ("deny", "admission webhook \"deny.example.com\" denied the request: not today"),
        ("boom", "failed calling webhook \"boom.example.com\": failed to call webhook"),
    ] {
        refused_alike(&namespace, "", case, words).await?;
    }
    for compared in compared_kinds(&namespace) {
        for (case, code) in [("missing", 500), ("undecodable", 500), ("invalid", 422)] {
            let answer = created(&namespace, &compared, "", case).await?;
            ensure!(answer.code == code, "{case}: {answer:?}");
        }
        let answer = created(&namespace, &compared, "?dryRun=All", "unknown").await?;
        ensure!(answer.code == 201 && answer.body["spec"]["nobodyKnows"].is_null(), "{answer:?}");
        let counted = created(&namespace, &compared, "?dryRun=All", "count").await?;
        // a, b and c in turn; a again because b changed what it had left, and then c because a did.
        ensure!(counted.body["metadata"]["labels"]["count"] == "5", "{counted:?}");
    }
    changes_are_kept(&namespace).await
}

async fn changes_are_kept(namespace: &Namespace) -> Result<()> {
    let mut managed = Vec::new();
    for compared in compared_kinds(namespace) {
        let answer = created(namespace, &compared, "?fieldManager=me", "patching").await?;
        ensure!(answer.code == 201 && answer.body["metadata"]["labels"]["x"] == "y", "{answer:?}");
        managed.push(answer.body["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"].clone());
        let uri = format!("{}/{NAME}", compared.uri);
        let removed = json!({"metadata": {"labels": {"x": null}}});
        let answer = send(&namespace.client, Method::PATCH, &uri, Some(&removed)).await?;
        ensure!(answer.code == 200 && answer.body["metadata"]["labels"]["x"] == "y", "{answer:?}");
        let answer = send(&namespace.client, Method::DELETE, &uri, None).await?;
        ensure!(answer.code == 500, "{answer:?}");
        let relabelled = json!({"metadata": {"labels": {"case": "removed"}}});
        let answer = send(&namespace.client, Method::PATCH, &uri, Some(&relabelled)).await?;
        ensure!(answer.code == 200, "{answer:?}");
        let answer = send(&namespace.client, Method::DELETE, &uri, None).await?;
        ensure!(answer.code == 200, "{answer:?}");
    }
    ensure!(managed[0] == managed[1], "{managed:#?}");
    namespace.kubectl.ok(&["delete", "mutatingwebhookconfiguration", "admission-mutating"]).await?;
    no_longer_refused(namespace, "deny").await
}
