//! Policies and webhooks on what lies in no namespace.

use anyhow::{Result, ensure};
use drydock_testkit::kinds::node_maintenance;
use drydock_testkit::wait::retry;
use http::Method;
use serde_json::{Value, json};

use super::webhook_server::WebhookServer;
use super::{Answer, configure, keep_params_watched, send};
use crate::shared::{LIMIT, Namespace, shared};

const URI: &str = "/apis/coordination.k8s.io/v1alpha1/nodemaintenances";

fn maintenance(name: &str, labels: Value) -> Value {
    let mut object = node_maintenance(name, "Idle", &["no-such-node"]);
    object["metadata"]["labels"] = labels;
    object
}

async fn ask(namespace: &Namespace, method: Method, uri: &str, body: Option<&Value>) -> Result<Answer> {
    send(&namespace.client, method, &format!("{URI}{uri}"), body).await
}

async fn until_answered(namespace: &Namespace, object: &Value, words: &str) -> Result<()> {
    let late = || format!("not answered with {words:?}");
    retry(LIMIT, late, async || {
        Ok(ask(namespace, Method::POST, "?dryRun=All", Some(object)).await?.body.to_string().contains(words))
    })
    .await
}

fn rules(resources: &[&str]) -> Value {
    json!([{"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1alpha1"], "operations": ["*"],
            "resources": resources, "scope": "Cluster"}])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_judges_maintenances_and_their_status() -> Result<()> {
    let namespace = shared().await?.namespace("admission-cluster").await?;
    keep_params_watched(&namespace).await?;
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "admission-cluster"},
        "spec": {
            "matchConstraints": {
                "objectSelector": {"matchLabels": {"judged": "here"}},
                "resourceRules": rules(&["nodemaintenances", "nodemaintenances/status"]),
            },
            "validations": [
                {"expression": "request.operation != 'CREATE' || object.spec.reason != 'a test'",
                 "messageExpression": "object.metadata.name + ' in ' + (has(request.namespace) ? 'some' : 'no') + ' namespace'"},
                {"expression": "request.operation != 'CREATE' || namespaceObject == null"},
                {"expression": "!has(request.subResource)", "message": "not the status"},
            ],
        },
    });
    let mut binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "admission-cluster"},
        "spec": {"policyName": "admission-cluster", "validationActions": ["Deny"]},
    });
    configure(&namespace, &policy).await?;
    configure(&namespace, &binding).await?;
    let mut judged = maintenance("admission-cluster", json!({"judged": "here"}));
    until_answered(&namespace, &judged, "admission-cluster in no namespace").await?;
    let denied = ask(&namespace, Method::POST, "", Some(&judged)).await?;
    let message = "nodemaintenances.coordination.k8s.io \"admission-cluster\" is forbidden: ValidatingAdmissionPolicy 'admission-cluster' with binding 'admission-cluster' denied request: admission-cluster in no namespace";
    ensure!(denied.code == 422 && denied.body["message"] == message, "{denied:?}");

    judged["spec"]["reason"] = json!("another");
    let made = ask(&namespace, Method::POST, "", Some(&judged)).await?;
    ensure!(made.code == 201, "{made:?}");
    let status = json!({"status": {"observedGeneration": 1}});
    let denied = ask(&namespace, Method::PATCH, "/admission-cluster/status", Some(&status)).await?;
    ensure!(
        denied.body["message"].as_str().is_some_and(|text| text.ends_with("not the status")),
        "{denied:?}"
    );

    policy["spec"]["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    binding["spec"]["paramRef"] = json!({"name": "any", "parameterNotFoundAction": "Deny"});
    configure(&namespace, &policy).await?;
    configure(&namespace, &binding).await?;
    let words = "failed to configure binding: cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
    until_answered(&namespace, &judged, words).await?;
    let removal = ask(&namespace, Method::DELETE, "/admission-cluster", None).await?;
    ensure!(removal.code == 422, "{removal:?}");
    namespace.kubectl.ok(&["delete", "validatingadmissionpolicybinding", "admission-cluster"]).await?;
    let late = || "still not to be removed".to_owned();
    let removed = async || Ok(ask(&namespace, Method::DELETE, "/admission-cluster", None).await?.code == 200);
    retry(LIMIT, late, removed).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_changes_maintenances_and_hears_of_their_status() -> Result<()> {
    let namespace = shared().await?.namespace("admission-cluster-hook").await?;
    let server = WebhookServer::start("hook.admission-cluster-hook.svc").await?;
    let hook = |name: &str, path: &str, resources: &[&str]| {
        json!({
            "name": format!("{name}.example.com"), "rules": rules(resources),
            "objectSelector": {"matchLabels": {"hooked": "here"}}, "clientConfig": server.client_config(path),
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        })
    };
    let mutating = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "admission-cluster-hook"},
        "webhooks": [hook("count", "count", &["nodemaintenances"])],
    });
    let mut validating = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "admission-cluster-hook"},
        "webhooks": [hook("status", "deny", &["nodemaintenances/status"])],
    });
    configure(&namespace, &mutating).await?;
    configure(&namespace, &validating).await?;
    let hooked = maintenance("admission-cluster-hook", json!({"hooked": "here"}));
    until_answered(&namespace, &hooked, "\"count\":\"1\"").await?;
    let made = ask(&namespace, Method::POST, "", Some(&hooked)).await?;
    ensure!(made.code == 201 && made.body["metadata"]["labels"]["count"] == "1", "{made:?}");
    let status = json!({"status": {"observedGeneration": 1}});
    let late = || "the status may be written".to_owned();
    retry(LIMIT, late, async || {
        let answer =
            ask(&namespace, Method::PATCH, "/admission-cluster-hook/status?dryRun=All", Some(&status))
                .await?;
        Ok(answer.code == 403
            && answer.body["message"].as_str().is_some_and(|text| text.ends_with("not today")))
    })
    .await?;
    // A webhook that is out of reach refuses everything, or nothing if it says so.
    validating["webhooks"][0]["clientConfig"]["url"] = json!("https://127.0.0.1:1/");
    configure(&namespace, &validating).await?;
    let late = || "a webhook that is away lets the status be written".to_owned();
    retry(LIMIT, late, async || {
        let answer =
            ask(&namespace, Method::PATCH, "/admission-cluster-hook/status?dryRun=All", Some(&status))
                .await?;
        Ok(answer.code == 500 && answer.body.to_string().contains("connection refused"))
    })
    .await?;
    validating["webhooks"][0]["failurePolicy"] = json!("Ignore");
    configure(&namespace, &validating).await?;
    let late = || "a webhook that may be ignored is not".to_owned();
    retry(LIMIT, late, async || {
        let answer =
            ask(&namespace, Method::PATCH, "/admission-cluster-hook/status?dryRun=All", Some(&status))
                .await?;
        Ok(answer.code == 200)
    })
    .await?;
    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        namespace.kubectl.ok(&["delete", kind, "admission-cluster-hook"]).await?;
    }
    namespace
        .kubectl
        .ok(&["delete", "nodemaintenance", "admission-cluster-hook", "--wait=false"])
        .await
        .map(drop)
}
