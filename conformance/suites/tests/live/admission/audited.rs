//! The audit log contains what admission did.

use anyhow::{Context, Result, ensure};
use drydock_testkit::host::audit::{AUDITED, events};
use drydock_testkit::host::client_of;
use drydock_testkit::wait::{retry, until_some};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Map, Value, json};

use super::webhook_server::WebhookServer;
use super::webhooks::configuration;
use super::{ComparedKind, compared_kinds, configure, send};
use crate::shared::{LIMIT, Namespace, Shared, shared};

const NAME: &str = "0a3c1a1c-7f3e-4f5e-9d0e-0123456789ab";
const SPACE: &str = "admission-audited";

fn policy() -> [Value; 2] {
    let rules = json!([{"apiGroups": ["coordination.k8s.io"], "apiVersions": ["*"], "operations": ["CREATE"],
                        "resources": ["evictionrequests", "leases"]}]);
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": SPACE},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}, "resourceRules": rules,
            },
            "validations": [{"expression": "true"}, {"expression": "object.metadata.labels.x == 'z'"}],
            "auditAnnotations": [{"key": "label", "valueExpression": "'x is ' + object.metadata.labels.x"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": SPACE}, "spec": {"policyName": SPACE, "validationActions": ["Warn", "Audit"]},
    });
    [policy, binding]
}

/// Waits until each of the configurations takes effect.
async fn all_in_force(namespace: &Namespace) -> Result<()> {
    for compared in compared_kinds(namespace) {
        let (uri, late) = (format!("{}?dryRun=All", compared.uri), || "not all in force".to_owned());
        retry(LIMIT, late, async || {
            let tried = compared.object(NAME, json!({"case": "all"}));
            let answer = send(&namespace.client, Method::POST, &uri, Some(&tried)).await?;
            let warnings = answer.warnings.join("\n");
            Ok(answer.body["metadata"]["labels"]["x"] == "y"
                && ["mind the gap", "failed expression"].iter().all(|words| warnings.contains(words)))
        })
        .await?;
    }
    Ok(())
}

/// What admission recorded about a create, in the log of the server of the kind.
async fn noted(shared: &Shared, compared: &ComparedKind, ours: bool) -> Result<Map<String, Value>> {
    let kubeconfig = shared.drydock.host.kubeconfig("audited-admin", &[AUDITED, "system:masters"])?;
    let client = client_of(&kubeconfig).await?;
    let id = format!("admission-{ours}");
    let body = compared.object(NAME, json!({"case": "all"})).to_string().into_bytes();
    let request = Request::post(format!("{}?dryRun=All", compared.uri))
        .header("content-type", "application/json")
        .header("audit-id", &id);
    let answer = client.send(request.body(Body::from(body))?).await?;
    ensure!(answer.status() == 201, "{answer:?}");
    answer.into_body().collect().await.context("the answer breaks off")?;
    let log = if ours { shared.drydock.audit_log() } else { shared.drydock.host.audit_log() };
    let late = || format!("{} tells nothing", log.display());
    let annotations = until_some(LIMIT, late, async || {
        let all = events(&log, &id)?;
        let ended = all.into_iter().find(|event| event["stage"] == "ResponseComplete");
        Ok(ended.map(|event| event["annotations"].clone()))
    })
    .await?;
    let noted = annotations.as_object().cloned().unwrap_or_default().into_iter();
    // The host notes how long each part of a request took if it took more than half a second.
    let beside = ["authorization.k8s.io/", "apiserver.latency.k8s.io/"];
    let noted = noted.filter(|(key, _)| !beside.iter().any(|prefix| key.starts_with(prefix)));
    // Other tests have webhooks too: the place among all of them changes.
    Ok(noted
        .map(|(key, value)| (key.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(), value))
        .collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_admission_did_is_noted_as_the_host_notes_it() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace(SPACE).await?;
    let server = WebhookServer::start("hook.admission-audited.svc").await?;
    let at = |path: &str, failure: &str| {
        let of_all = json!({"matchLabels": {"case": "all"}});
        json!({"clientConfig": server.client_config(path), "failurePolicy": failure, "objectSelector": of_all})
    };
    let mutating = [("patching", at("patching", "Fail"))];
    let validating = [("boom", at("boom", "Ignore")), ("warn", at("warn", "Fail"))];
    configure(&namespace, &configuration("MutatingWebhookConfiguration", SPACE, &mutating)).await?;
    configure(&namespace, &configuration("ValidatingWebhookConfiguration", SPACE, &validating)).await?;
    for object in policy() {
        configure(&namespace, &object).await?;
    }
    all_in_force(&namespace).await?;
    let [ours, hosts] = compared_kinds(&namespace);
    let left = noted(shared, &ours, true).await?;
    let right = noted(shared, &hosts, false).await?;
    ensure!(left == right, "we note\n{left:#?}\nand the host\n{right:#?}");
    for key in [
        "admission-audited/label",
        "failed-open.validating.webhook.admission.k8s.io/round_0_index_",
        "mutation.webhook.admission.k8s.io/round_0_index_",
        "patch.webhook.admission.k8s.io/round_0_index_",
        "validation.policy.admission.k8s.io/validation_failure",
        "warn.example.com/a",
    ] {
        ensure!(left.contains_key(key), "{key} is not in {left:#?}");
    }
    Ok(())
}
