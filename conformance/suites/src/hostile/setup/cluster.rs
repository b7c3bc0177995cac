//! Nodes and pods that requests and drains are about.

use anyhow::{Context, Result};
use drydock_api::eviction_request::interceptor_annotations;
use drydock_testkit::kinds::{eviction_request, node_maintenance};
use drydock_testkit::wait::{LIMIT, retry};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};

use super::{AttackSetup, Tenant};
use crate::client::UserRequest;

/// Pods that are made at a time.
const AT_A_TIME: usize = 16;
/// An interceptor that never reports: its request stays as it is.
pub const PATIENT: &str = "patient.example.com";

/// Name and UID of each of some pods.
pub type Pods = Vec<(String, String)>;

impl AttackSetup {
    /// A node whose kubelet is kwok.
    pub async fn node(&self, name: &str) -> Result<()> {
        let size = json!({"cpu": "64", "memory": "512Gi", "pods": "11000"});
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"},
                         "labels": {"kubernetes.io/hostname": name, "type": "kwok"}},
            "status": {"allocatable": size, "capacity": size},
        });
        self.done(&UserRequest::post("/api/v1/nodes", &node)).await.map(drop)
    }

    /// Pods `pod-N` of a tenant on a node; patient ones have an interceptor that never reports.
    pub async fn pods(&self, tenant: &Tenant, node: &str, count: usize, patient: bool) -> Result<Pods> {
        let key = format!("{}priority_{PATIENT}", interceptor_annotations::PREFIX);
        let annotations = if patient { json!({key: "1000/controller"}) } else { json!({}) };
        self.annotated_pods(tenant, node, count, &annotations).await
    }

    /// The same with these annotations.
    pub async fn annotated_pods(
        &self,
        tenant: &Tenant,
        node: &str,
        count: usize,
        with: &Value,
    ) -> Result<Pods> {
        self.made_pods(tenant, node, "pod", count, with).await
    }

    /// Pods `PREFIX-N` of a tenant on a node.
    pub async fn named_pods(&self, tenant: &Tenant, node: &str, prefix: &str, count: usize) -> Result<Pods> {
        self.made_pods(tenant, node, prefix, count, &json!({})).await
    }

    async fn made_pods(
        &self,
        tenant: &Tenant,
        node: &str,
        prefix: &str,
        count: usize,
        with: &Value,
    ) -> Result<Pods> {
        let admin = self.admin().await?;
        let made = (0..count).map(|at| {
            let (admin, ask) = (
                admin.clone(),
                UserRequest::post(tenant.pods(), &pod(&format!("{prefix}-{at}"), node, with)),
            );
            async move {
                let pod = admin.done(&ask).await?;
                let field = |name: &str| pod["metadata"][name].as_str().map(str::to_owned);
                field("name").zip(field("uid")).context("a pod without a UID")
            }
        });
        stream::iter(made).buffered(AT_A_TIME).try_collect().await
    }

    /// A pod, named like its node, with an interceptor that never reports.
    pub async fn patient_pod(&self, tenant: &Tenant, node: &str) -> Result<()> {
        let key = format!("{}priority_{PATIENT}", interceptor_annotations::PREFIX);
        let made = self.made_pods(tenant, node, node, 1, &json!({key: "1000/controller"})).await;
        made.map(drop)
    }

    /// Waits until the node has written that a pod runs.
    pub async fn until_running(&self, tenant: &Tenant, pod: &str) -> Result<()> {
        let path = UserRequest::get(format!("{}/{pod}", tenant.pods()));
        let is_running = async || Ok(self.done(&path).await?["status"]["phase"] == "Running");
        retry(LIMIT, || format!("the pod {pod} does not run"), is_running).await
    }

    /// Creates an EvictionRequest that stays, as the interceptor of its pod never reports. Returns its name.
    pub async fn lasting_request(&self, tenant: &Tenant) -> Result<String> {
        let node = format!("node-of-{}", tenant.namespace);
        self.node(&node).await?;
        let pods = self.pods(tenant, &node, 1, true).await?;
        let (pod, uid) = pods.first().context("no pod")?;
        self.done(&UserRequest::post(
            tenant.requests(),
            &eviction_request(pod, uid, "other-tenant.example.com"),
        ))
        .await?;
        Ok(uid.clone())
    }

    /// Creates a maintenance that drains one node.
    pub async fn drain(&self, name: &str, node: &str) -> Result<()> {
        let path = format!("/apis/{}/nodemaintenances", drydock_api::API_VERSION);
        self.done(&UserRequest::post(path, &node_maintenance(name, "Drain", &[node]))).await.map(drop)
    }

    /// Waits until a maintenance names a blocker of that reason whose message has these words.
    pub async fn blocker(&self, name: &str, reason: &str, words: &[&str]) -> Result<()> {
        let late = || format!("no blocker {reason} with the words {words:?}");
        retry(LIMIT, late, async || self.has_blocker(name, reason, words).await).await
    }

    /// Whether a maintenance names such a blocker now.
    pub async fn has_blocker(&self, name: &str, reason: &str, words: &[&str]) -> Result<bool> {
        let is_meant = |blocker: &Value| {
            let message = blocker["message"].as_str().unwrap_or_default();
            blocker["reason"] == reason && words.iter().all(|word| message.contains(word))
        };
        let found = self.done(&UserRequest::get(maintenance(name))).await?;
        let blockers = found["status"]["nodeStatuses"][0]["blockers"].as_array();
        Ok(blockers.is_some_and(|blockers| blockers.iter().any(is_meant)))
    }
}

/// The path of a maintenance.
pub fn maintenance(name: &str) -> String {
    format!("/apis/{}/nodemaintenances/{name}", drydock_api::API_VERSION)
}

/// Whether a condition of an object is True.
pub fn has_condition(object: &Value, type_: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

/// A pod of a tenant on a node.
pub fn pod(name: &str, node: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"nodeName": node, "serviceAccountName": "account-0", "automountServiceAccountToken": false,
                 "containers": [{"name": "c", "image": "none"}]},
    })
}
