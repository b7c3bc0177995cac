//! The host's garbage collector: owners and dependents on either side of the aggregator.

use std::slice::from_ref;

use anyhow::{Context, Result};
use drydock_testkit::kinds::{eviction_request, node_maintenance};
use drydock_testkit::kubectl::Kubectl;
use serde_json::{Value, json};

use crate::shared::shared;

#[tokio::test(flavor = "multi_thread")]
async fn our_objects_go_with_their_owner_in_the_host() -> Result<()> {
    let namespace = shared().await?.namespace("gc-hosts-owner").await?;
    let kubectl = &namespace.kubectl;
    let owner = owner(kubectl, &config_map("owner", &[])).await?;
    let uid = "11111111-7f3e-4f5e-9d0e-0123456789ab";
    let mut request = eviction_request("p", uid, "test.example.com");
    request["metadata"]["ownerReferences"] = json!([owner]);
    kubectl.apply(&request).await?;
    kubectl.ok(&["delete", "configmap", "owner"]).await?;
    kubectl.ok(&["wait", "evreq", uid, "--for=delete"]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_the_host_go_with_their_owner_of_ours() -> Result<()> {
    let namespace = shared().await?.namespace("gc-our-owner").await?;
    let kubectl = &namespace.kubectl;
    let maintenance = owner(kubectl, &node_maintenance("gc-owner", "Idle", &["nowhere"])).await?;
    let uid = "22222222-7f3e-4f5e-9d0e-0123456789ab";
    let request = owner(kubectl, &eviction_request("p", uid, "test.example.com")).await?;
    kubectl.apply(&config_map("of-maintenance", from_ref(&maintenance))).await?;
    kubectl.apply(&config_map("of-request", from_ref(&request))).await?;
    kubectl.apply(&config_map("of-both", &[maintenance, request])).await?;
    kubectl.ok(&["delete", "nm", "gc-owner"]).await?;
    kubectl.ok(&["wait", "configmap", "of-maintenance", "--for=delete"]).await?;
    kubectl.ok(&["get", "configmap", "of-both"]).await?;
    kubectl.ok(&["delete", "evreq", uid]).await?;
    kubectl.ok(&["wait", "configmap", "of-request", "of-both", "--for=delete"]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreground_deletion_waits_for_the_dependents() -> Result<()> {
    let namespace = shared().await?.namespace("gc-foreground").await?;
    let kubectl = &namespace.kubectl;
    let maintenance = owner(kubectl, &node_maintenance("gc-foreground", "Idle", &["nowhere"])).await?;
    let mut dependent = config_map("dependent", &[maintenance]);
    dependent["metadata"]["finalizers"] = json!(["example.com/hold"]);
    kubectl.apply(&dependent).await?;
    kubectl.ok(&["delete", "nm", "gc-foreground", "--cascade=foreground", "--wait=false"]).await?;
    let deleting = "--for=jsonpath={.metadata.deletionTimestamp}";
    kubectl.ok(&["wait", "configmap", "dependent", deleting]).await?;
    let held = kubectl.object("nm", "gc-foreground").await?;
    assert_eq!(held["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let release = r#"--patch={"metadata":{"finalizers":null}}"#;
    kubectl.ok(&["patch", "configmap", "dependent", "--type=merge", release]).await?;
    kubectl.ok(&["wait", "nm", "gc-foreground", "--for=delete"]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphaned_dependent_stays_and_forgets_its_owner() -> Result<()> {
    let namespace = shared().await?.namespace("gc-orphan").await?;
    let kubectl = &namespace.kubectl;
    let maintenance = owner(kubectl, &node_maintenance("gc-orphan", "Idle", &["nowhere"])).await?;
    kubectl.apply(&config_map("dependent", &[maintenance])).await?;
    kubectl.ok(&["delete", "nm", "gc-orphan", "--cascade=orphan"]).await?;
    let dependent = kubectl.object("configmap", "dependent").await?;
    assert_eq!(dependent["metadata"]["ownerReferences"], Value::Null, "{dependent}");
    Ok(())
}

/// Applies an object and returns the reference with which others are owned by it.
async fn owner(kubectl: &Kubectl, object: &Value) -> Result<Value> {
    kubectl.apply(object).await?;
    let text = |value: &Value| value.as_str().map(str::to_owned).context("not a text");
    let (kind, name) = (text(&object["kind"])?, text(&object["metadata"]["name"])?);
    let made = kubectl.object(&kind, &name).await?;
    Ok(json!({
        "apiVersion": object["apiVersion"], "kind": kind, "name": name, "uid": made["metadata"]["uid"],
        "blockOwnerDeletion": true,
    }))
}

fn config_map(name: &str, owners: &[Value]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": owners},
    })
}
