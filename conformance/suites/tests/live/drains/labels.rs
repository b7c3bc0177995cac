//! The labels of a pod on its request while the pod cannot leave (KEP-4563: they are synchronized).

use anyhow::{Context, Result};
use drydock_testkit::kinds::{eviction_requests, named_node_maintenance};
use drydock_testkit::wait::until;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::json;

use super::{LIMIT, budget, deployment};
use crate::shared::shared;

/// The requester applies the pod's labels when it makes the request, and is the field manager of each: the controller
/// that synchronizes them has to remove and to change them all the same, and to leave those of others.
#[tokio::test(flavor = "multi_thread")]
async fn labels_that_the_requester_applied_follow_the_pod_and_those_of_others_stay() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("labels").await?;
    let node = shared.node("labels").await?;
    namespace.kubectl.apply(&budget("held")).await?;
    let spec = json!({"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [{"name": "c", "image": "none"}]});
    namespace.kubectl.apply(&deployment("held", 1, spec)).await?;
    namespace.kubectl.ok(&["rollout", "status", "deployment/held"]).await?;
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    let pod = pods.list(&ListParams::default()).await?.items.pop().context("no pod")?;
    let (name, uid) = (pod.name_any(), pod.uid().context("no uid")?);
    namespace.kubectl.ok(&["label", "pod", &name, "tier=web", "zone=a"]).await?;
    namespace.kubectl.apply(&named_node_maintenance("labels", "Drain", &[&node])).await?;
    let has = |wanted: &'static [(&'static str, Option<&'static str>)]| {
        move |object: Option<&DynamicObject>| {
            let is = |labels: &std::collections::BTreeMap<String, String>,
                      (key, value): &(&str, Option<&str>)| {
                labels.get(*key).map(String::as_str) == *value
            };
            object.is_some_and(|object| wanted.iter().all(|pair| is(object.labels(), pair)))
        }
    };
    let requests = || eviction_requests(&namespace.client, &namespace.name);
    let copied = &[("app", Some("held")), ("tier", Some("web")), ("zone", Some("a"))];
    until(requests(), &uid, LIMIT, "the pod's labels", has(copied)).await?;
    namespace.kubectl.ok(&["label", "evictionrequest", &uid, "own=kept"]).await?;
    namespace.kubectl.ok(&["label", "pod", &name, "tier-", "zone=b", "--overwrite"]).await?;
    let changed = &[("app", Some("held")), ("tier", None), ("zone", Some("b")), ("own", Some("kept"))];
    until(requests(), &uid, LIMIT, "the changed labels", has(changed)).await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/labels"]).await.map(drop)
}
