//! A controller manager that ends while the host considers an eviction of its own.
//!
//! The host aborts an eviction whose client goes away, and may count it against a budget for two minutes all the same.

use anyhow::{Context, Result, bail, ensure};
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::drydock::{Drydock, MANAGER, Options};
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::eviction_request;
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::{LIMIT, retry};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, EvictParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use crate::admission::webhook_server::WebhookServer;

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_that_is_asked_to_end_waits_for_its_evictions_in_flight() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    let kubectl = Kubectl::new(&drydock.host);
    let node = create_nodes(&drydock.host.client().await?, "in-flight", 1).await?.pop().context("no node")?;
    kubectl.apply(&pod(&node)).await?;
    kubectl.ok(&["wait", "pod/a", "--for=condition=Ready"]).await?;
    let uid = kubectl.object("pod", "a").await?["metadata"]["uid"].as_str().context("no uid")?.to_owned();
    let server = WebhookServer::start("hook.in-flight.svc").await?;
    kubectl.apply(&webhook(&server)).await?;
    holds_evictions(drydock.host.client().await?, &server).await?;

    kubectl.apply(&eviction_request("a", &uid, "admin.example.com")).await?;
    let log = drydock.host.log(MANAGER);
    let is_asked = async || Ok(!server.asked("held").is_empty());
    if let Err(late) = retry(LIMIT, || "the eviction does not come".to_owned(), is_asked).await {
        let request =
            kubectl.object("evictionrequest", &uid).await.map(|request| request["status"].to_string());
        bail!("{late}: {request:?}\n{:?}", std::fs::read_to_string(&log));
    }
    let stops = async {
        let is_stopping = async || Ok(std::fs::read_to_string(&log)?.contains("stopping"));
        retry(LIMIT, || "it does not stop".to_owned(), is_stopping).await?;
        ensure!(
            kubectl.object("pod", "a").await?["metadata"]["deletionTimestamp"].is_null(),
            "nothing was held"
        );
        server.release();
        Ok(())
    };
    let (ended, released) = tokio::join!(drydock.stop_manager(), stops);
    released?;
    ensure!(ended?.success(), "the manager failed");
    kubectl.ok(&["wait", "pod/a", "--for=delete"]).await?;
    // No manager says so until the next one runs.
    drydock.start_manager().await?;
    kubectl.ok(&["wait", "evictionrequest", &uid, "--for=condition=Evicted"]).await.map(drop)
}

fn pod(node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "none"}]},
    })
}

fn webhook(server: &WebhookServer) -> Value {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"],
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "in-flight"},
        "webhooks": [{
            "name": "hook.in-flight.svc", "clientConfig": server.client_config("held"), "rules": [rule],
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
        }],
    })
}

/// Waits until the host asks the webhook about evictions, by those of a pod that does not exist: each is refused at once, but
/// for the one that the webhook holds.
async fn holds_evictions(client: Client, server: &WebhookServer) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let evictions = async {
        loop {
            let refused = pods.evict("none", &EvictParams::default()).await;
            let is_none = matches!(&refused, Err(Error::Api(status)) if status.code == 404);
            ensure!(is_none, "evicted: {refused:?}");
        }
    };
    let asked = async || Ok(!server.asked("held").is_empty());
    tokio::select! {
        held = retry(LIMIT, || "the webhook is not asked".to_owned(), asked) => held,
        ended = evictions => ended,
    }
}
