//! Objects as large as the host takes them, of every kind that the controllers cache.
//!
//! What the host itself does with such an object takes seconds of a small machine, so that there are few of them in the short
//! form, and the host's own controllers have little to do with them:
//!
//! - The managed fields of 70,000 labels take it four seconds, as their cost grows with the square of their number, and beside
//!   others more than the 34 s that it has: the short form has fewer, and most of what fills the caches are budgets.
//! - The host compares every budget of a namespace with each pod of it that changes or is evicted: budgets are in a namespace
//!   without pods.
//! - No kubelet answers for the node on which the large pods are, so that nobody writes their status.
//! - What an autoscaler scales is of a kind that does not exist. The host would try each second to read a Deployment with a name
//!   of a megabyte, and write the error into events and into the status.

use std::iter::repeat_n;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use drydock_testkit::kinds::node_maintenance;
use drydock_testkit::wait::{LIMIT, retry};
use futures::future::try_join_all;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::eviction_requests::request;
use super::host::allow_maintenances;
use crate::client::{UserRequest, UserResponse};
use crate::context::AttackContext;
use crate::setup::Tenant;
use crate::setup::cluster::{maintenance, pod};

/// Labels of an object in etcd in the short form.
const LABELS: usize = 20_000;
/// The same in the long form. etcd takes 1.5 MiB: 9 bytes each, and 11 in the managed fields.
const MOST_LABELS: usize = 70_000;
/// Labels of a maintenance, of which 512 KiB are taken without its status.
const MAINTENANCE_LABELS: usize = 25_000;
/// Labels of a request, of which 64 KiB are taken without its status.
const REQUEST_LABELS: usize = 2_800;
/// Values of the selector of a budget.
const VALUES: usize = 480_000;
/// Bytes of a name or a number that nobody bounds.
const LONG: usize = 1 << 20;
/// Pods in the record of a surge, which is an annotation.
const RECORDED: usize = 25_000;
const RECORD: &str = "surge.coordination.k8s.io/record";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// What keys of labels are made of.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The objects, and the tenants that make them.
pub struct LargeObjects {
    context: AttackContext,
    /// Has budgets and no pods.
    budgets: AttackContext,
}

impl LargeObjects {
    /// Gives the tenant of an attack, and another one, the rights to make them, and makes the node. The tenants may write
    /// maintenances, and of the host's kinds what an editor may.
    pub async fn of(context: &AttackContext) -> Result<LargeObjects> {
        let nodes = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["delete"]});
        allow_maintenances(context, &[nodes]).await?;
        let name = &context.tenant.namespace;
        let rules = json!([
            {"apiGroups": ["apps"], "resources": ["deployments", "replicasets", "daemonsets"], "verbs": ["*"]},
            {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["*"]},
        ]);
        let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"});
        let subjects = [context.tenant.subject()];
        let binding = json!({"metadata": {"name": "deployer"}, "roleRef": role_ref, "subjects": subjects});
        let role = json!({"metadata": {"name": "deployer"}, "rules": rules});
        for (kind, object) in [("roles", role), ("rolebindings", binding)] {
            let path = format!("{RBAC}/namespaces/{name}/{kind}");
            context.setup.done(&UserRequest::post(path, &object)).await?;
        }
        let other = Arc::new(context.setup.tenant(&format!("{name}-budgets"), 1).await?);
        let objects = LargeObjects { context: context.clone(), budgets: context.of(other) };
        let connection = context.connect_through_host().await?;
        for path in [LargeObjects::deployments_of(&context.tenant), maintenances()] {
            let list = UserRequest::get(format!("{path}?limit=1"));
            let has_rights = async || Ok(connection.ask_again(&list).await?.code.is_success());
            retry(LIMIT, || format!("the tenant may not list {path}"), has_rights).await?;
        }
        Ok(objects)
    }

    /// The name of the node on which the large pods are. It has no kubelet.
    pub fn node(&self) -> String {
        format!("{}-large", self.context.tenant.namespace)
    }

    /// The path of the budgets of a tenant.
    pub fn budgets_of(tenant: &Tenant) -> String {
        format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", tenant.namespace)
    }

    /// The path of the Deployments of a tenant.
    pub fn deployments_of(tenant: &Tenant) -> String {
        format!("/apis/apps/v1/namespaces/{}/deployments", tenant.namespace)
    }

    fn replica_sets(&self) -> String {
        format!("/apis/apps/v1/namespaces/{}/replicasets", self.context.tenant.namespace)
    }

    fn daemon_sets(&self) -> String {
        format!("/apis/apps/v1/namespaces/{}/daemonsets", self.context.tenant.namespace)
    }

    fn autoscalers(&self) -> String {
        format!("/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers", self.context.tenant.namespace)
    }

    /// Makes the objects.
    pub async fn make(&self) -> Result<()> {
        tokio::try_join!(self.make_pods(), self.make_workloads(), self.make_budgets(), self.make_ours())
            .map(drop)
    }

    async fn make_pods(&self) -> Result<()> {
        let context = &self.context;
        let labels = labels(context.pick(LABELS, MOST_LABELS));
        let node = json!({"metadata": {"name": self.node(), "labels": labels}});
        context.setup.done(&UserRequest::post("/api/v1/nodes", &node)).await?;
        let mut large = named(pod("", &self.node(), &json!({})), "pod");
        large["metadata"]["labels"] = labels;
        let large = UserRequest::post(context.tenant.pods(), &large);
        post(context, repeat_n(large, context.pick(2, 60))).await
    }

    async fn make_workloads(&self) -> Result<()> {
        let context = &self.context;
        let labels = labels(context.pick(LABELS, MOST_LABELS));
        let mut set = named(deployment("", 0), "set");
        (set["kind"], set["metadata"]["labels"]) = (json!("ReplicaSet"), labels.clone());
        let set = UserRequest::post(self.replica_sets(), &set);
        post(context, repeat_n(set, context.pick(1, 30))).await?;
        let mut set = named(daemon_set(), "daemons");
        set["metadata"]["labels"] = labels;
        let set = UserRequest::post(self.daemon_sets(), &set);
        post(context, repeat_n(set, context.pick(1, 30))).await?;
        let target = json!({"apiVersion": "example.com/v1", "kind": "Deployment", "name": "d".repeat(LONG)});
        let autoscaler = named(
            json!({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 2},
            }),
            "scaler",
        );
        let autoscaler = UserRequest::post(self.autoscalers(), &autoscaler);
        post(context, repeat_n(autoscaler, context.pick(2, 60))).await?;
        for at in 0..context.pick(2, 30) {
            self.make_recorded(&format!("recorded-{at:03}")).await?;
        }
        Ok(())
    }

    /// Makes a Deployment with a long number whose surge record names 25,000 pods.
    async fn make_recorded(&self, name: &str) -> Result<()> {
        let connection = self.context.connect_through_host().await?;
        let mut made = deployment(name, 0);
        made["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": long_percentage()}});
        let path = LargeObjects::deployments_of(&self.context.tenant);
        let made = connection.done(&UserRequest::post(&path, &made)).await?;
        let pods: Vec<String> = (0..RECORDED).map(|at| format!("{at:05}")).collect();
        let record = json!({
            "delta": pods.len(), "replicas": pods.len() + 1, "pods": pods, "since": "2026-01-01T00:00:00Z",
            "uid": made["metadata"]["uid"],
        });
        let change = json!({"metadata": {"annotations": {RECORD: record.to_string()}}});
        connection.done(&UserRequest::merge(format!("{path}/{name}"), &change)).await.map(drop)
    }

    async fn make_budgets(&self) -> Result<()> {
        let context = &self.budgets;
        let path = LargeObjects::budgets_of(&context.tenant);
        let one_of = json!({"key": "large", "operator": "In", "values": vec![""; VALUES]});
        let spec = json!({"selector": {"matchExpressions": [one_of]}, "maxUnavailable": 1});
        let huge = UserRequest::post(&path, &named(json!({"spec": spec}), "huge"));
        post(context, repeat_n(huge, context.pick(12, 60))).await?;
        let spec = json!({"selector": {"matchLabels": {"none": "none"}}, "minAvailable": long_percentage()});
        let long = UserRequest::post(&path, &named(json!({"spec": spec}), "long"));
        post(context, repeat_n(long, context.pick(2, 60))).await
    }

    async fn make_ours(&self) -> Result<()> {
        let (context, requests) = (&self.context, self.context.tenant.requests());
        let prefix = &context.tenant.namespace;
        let mut planned = named(node_maintenance("", "Idle", &["nowhere"]), prefix);
        planned["metadata"]["labels"] = labels(MAINTENANCE_LABELS);
        let planned = UserRequest::post(maintenances(), &planned);
        post(context, repeat_n(planned, context.pick(2, 60))).await?;
        let labelled = (0..context.pick(8, 600)).map(|at| {
            let mut labelled = request(at);
            labelled["metadata"]["labels"] = labels(REQUEST_LABELS);
            UserRequest::post(&requests, &labelled)
        });
        post(context, labelled).await
    }

    /// Removes what was made: the host's programs hold it too.
    pub async fn remove(&self) -> Result<()> {
        let (tenant, admin) = (&self.context.tenant, self.context.setup.admin().await?);
        let workloads = [
            LargeObjects::deployments_of(tenant),
            self.replica_sets(),
            self.daemon_sets(),
            self.autoscalers(),
            // No kubelet ends the large ones.
            format!("{}?gracePeriodSeconds=0", tenant.pods()),
        ];
        let others = [
            LargeObjects::budgets_of(tenant),
            LargeObjects::budgets_of(&self.budgets.tenant),
            tenant.requests(),
        ];
        let admin = &admin;
        let emptied = workloads.into_iter().chain(others).map(|path| async move {
            let delete = UserRequest::delete(&path);
            let is_empty = async || Ok(admin.ask_again(&delete).await?.code.is_success());
            retry(LIMIT, || format!("{path} is not empty"), is_empty).await
        });
        try_join_all(emptied).await?;
        let found = admin.done(&UserRequest::get(maintenances())).await?;
        for planned in found["items"].as_array().into_iter().flatten() {
            let found = planned["metadata"]["name"].as_str().context("a maintenance without a name")?;
            if found.starts_with(&format!("{}-", tenant.namespace)) {
                admin.ask_again(&UserRequest::delete(maintenance(found))).await?;
            }
        }
        let node = UserRequest::delete(format!("/api/v1/nodes/{}", self.node()));
        let is_gone = async || {
            let code = admin.ask_again(&node).await?.code;
            Ok(code.is_success() || code == StatusCode::NOT_FOUND)
        };
        retry(LIMIT, || format!("node {} is there", self.node()), is_gone).await
    }
}

/// A Deployment whose pods run nothing, and that has opted in to surges.
pub fn deployment(name: &str, replicas: usize) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "annotations": {"surge.coordination.k8s.io/enabled": "true"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "none"}]},
        }},
    })
}

/// A DaemonSet that no node takes.
fn daemon_set() -> Value {
    let labels = json!({"app": "daemons"});
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"nodeSelector": {"example.com/none": "none"}, "containers": [{"name": "c", "image": "none"}]},
        }},
    })
}

/// The path of all maintenances.
fn maintenances() -> String {
    maintenance("").trim_end_matches('/').to_owned()
}

/// An object whose name the server makes, so that one body makes many.
fn named(mut object: Value, prefix: &str) -> Value {
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("name");
    }
    object["metadata"]["generateName"] = json!(format!("{prefix}-"));
    object
}

/// As many labels as asked for, with short keys.
fn labels(count: usize) -> Value {
    let digit = |at: usize| char::from(DIGITS[at % DIGITS.len()]);
    let key =
        |at: usize| [at / DIGITS.len().pow(2), at / DIGITS.len(), at].map(digit).iter().collect::<String>();
    (0..count).map(|at| (key(at), json!(""))).collect::<Map<_, _>>().into()
}

fn long_percentage() -> String {
    format!("{}1%", "0".repeat(LONG))
}

/// Sends these requests, one after the other. Fails unless most of them are taken: what is refused shows nothing.
async fn post(context: &AttackContext, asks: impl ExactSizeIterator<Item = UserRequest>) -> Result<()> {
    let connection = context.connect_through_host().await?;
    let (count, mut taken, mut path) = (asks.len(), 0, String::new());
    for ask in asks {
        let answer = connection.ask_again(&ask).await;
        taken += usize::from(answer.as_ref().is_ok_and(|answer| answer.code.is_success()));
        note(context, &ask.path, &answer);
        path = ask.path;
    }
    ensure!(4 * taken >= 3 * count, "{path} took {taken} of {count}: {}", context.summary());
    Ok(())
}

/// Notes an answer. An error of the host about its own kinds is no fault of ours.
fn note(context: &AttackContext, path: &str, answer: &Result<UserResponse>) {
    let is_error = answer.as_ref().is_ok_and(|answer| answer.code.is_server_error());
    if is_error && !path.contains(drydock_api::GROUP) {
        context.count("host-error");
    } else {
        context.note(answer);
    }
}
