//! The cluster: held pods, whose interceptor never ends its turn, and guarded pods, which only their budget keeps.

use std::time::Duration;

use anyhow::{Context, Result};
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::kinds::{eviction_request, eviction_requests};
use drydock_testkit::wait::until;
use futures::stream::{self, StreamExt, TryStreamExt};
use indicatif::{ProgressBar, ProgressStyle};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

/// How many budgets there are, each in a namespace of its own.
pub const BUDGETS: usize = 20;
/// Name of each of them.
pub const BUDGET: &str = "guard";
/// The interceptor of the held pods.
pub const INTERCEPTOR: &str = "hold.example.com";

const REQUESTER: &str = "scale.example.com";
/// Held pods of a namespace, and of a node: nothing plays their kubelet.
const HELD_TOGETHER: usize = 500;
/// Guarded pods of a node, of the 110 that it takes.
const GUARDED_TOGETHER: usize = 100;
/// Writes under way at a time.
const IN_FLIGHT: usize = 32;
const LIMIT: Duration = Duration::from_secs(600);

/// A pod, and the name of its request.
#[derive(Clone, Debug)]
pub struct RequestedPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID, which is the request's name.
    pub uid: String,
}

/// A namespace whose budget allows no disruption.
#[derive(Clone, Debug)]
pub struct GuardedNamespace {
    /// The namespace.
    pub namespace: String,
    /// Pods that are left in it.
    pub left: usize,
}

/// The pods.
pub struct ScaleWorkload {
    /// Those whose interceptor holds them.
    pub held: Vec<RequestedPod>,
    /// Those that budgets guard.
    pub blocked: Vec<RequestedPod>,
    /// The namespaces of these, with a budget each.
    pub guarded: Vec<GuardedNamespace>,
}

impl ScaleWorkload {
    /// Creates nodes, namespaces, pods and budgets, and waits until each budget has counted its pods.
    pub async fn create(client: &Client, requests: usize, blocked: usize) -> Result<ScaleWorkload> {
        let nodes = create_nodes(client, "guarded", blocked.div_ceil(GUARDED_TOGETHER)).await?;
        let guarded_pods = (0..blocked).map(|index| {
            let namespace = format!("guarded-{:02}", index % BUDGETS);
            (namespace, pod(index, &nodes[index / GUARDED_TOGETHER], &json!({})))
        });
        let annotation = format!("interceptor.evictionrequest.coordination.k8s.io/priority_{INTERCEPTOR}");
        let annotations = json!({annotation: "10000/controller"});
        let held_pods = (0..requests - blocked).map(|index| {
            let group = format!("held-{:03}", index / HELD_TOGETHER);
            (group.clone(), pod(index, &group, &annotations))
        });
        let groups: Vec<String> =
            (0..(requests - blocked).div_ceil(HELD_TOGETHER)).map(|i| format!("held-{i:03}")).collect();
        for name in &groups {
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
            Api::<Node>::all(client.clone())
                .create(&PostParams::default(), &serde_json::from_value(node)?)
                .await?;
            namespace(client, name).await?;
        }
        let mut guarded = Vec::new();
        for index in 0..BUDGETS {
            guarded
                .push(GuardedNamespace { namespace: format!("guarded-{index:02}"), left: blocked / BUDGETS });
            namespace(client, &guarded[index].namespace).await?;
        }
        let blocked = create_pods(client, "guarded pods", guarded_pods.collect()).await?;
        for one in &guarded {
            guard(client, one).await?;
        }
        let held = create_pods(client, "held pods", held_pods.collect()).await?;
        Ok(ScaleWorkload { held, blocked, guarded })
    }

    /// Requests the eviction of all of them.
    pub async fn request(&self, direct: &Client) -> Result<()> {
        let bar = bar("requests", self.held.len() + self.blocked.len());
        let pods = self.held.iter().chain(&self.blocked);
        stream::iter(pods.map(Ok))
            .try_for_each_concurrent(IN_FLIGHT, async |pod| {
                let object = eviction_request(&pod.name, &pod.uid, REQUESTER);
                let requests = eviction_requests(direct, &pod.namespace);
                requests.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
                bar.inc(1);
                anyhow::Ok(())
            })
            .await
            .context("creating the requests")
    }
}

/// How far the filling has come, for whoever looks.
pub fn bar(what: &'static str, of: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len}, {per_sec}, {eta} left");
    ProgressBar::new(of as u64)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(what)
}

/// Creates a namespace, and waits until it takes pods.
async fn namespace(client: &Client, name: &str) -> Result<()> {
    let object = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &object).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
    until(accounts, "default", LIMIT, "there", |found: Option<&ServiceAccount>| found.is_some()).await?;
    Ok(())
}

async fn create_pods(
    client: &Client,
    what: &'static str,
    pods: Vec<(String, Value)>,
) -> Result<Vec<RequestedPod>> {
    let bar = bar(what, pods.len());
    stream::iter(pods)
        .map(|(namespace, pod)| {
            let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
            let bar = &bar;
            async move {
                let made = pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
                bar.inc(1);
                let uid = made.uid().context("a pod without a UID")?;
                anyhow::Ok(RequestedPod { namespace, name: made.name_any(), uid })
            }
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect()
        .await
        .context("creating the pods")
}

/// Creates the budget that keeps all pods of a namespace.
async fn guard(client: &Client, guarded: &GuardedNamespace) -> Result<()> {
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), &guarded.namespace);
    let object = json!({
        "metadata": {"name": BUDGET},
        "spec": {"minAvailable": guarded.left, "selector": {"matchLabels": {"app": "scale"}}},
    });
    budgets.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let all = i32::try_from(guarded.left)?;
    let counted = |budget: Option<&PodDisruptionBudget>| {
        let status = budget.and_then(|budget| budget.status.as_ref());
        status.is_some_and(|status| status.expected_pods == all && status.current_healthy == all)
    };
    until(budgets, BUDGET, LIMIT, "counted", counted).await.map(drop)
}

/// A pod that is bound already, and stays when its node is lost.
fn pod(index: usize, node: &str, annotations: &Value) -> Value {
    json!({
        "metadata": {
            "name": format!("pod-{index:06}"), "annotations": annotations,
            "labels": {"app": "scale", "pod-template-hash": "5d4f8c7b9d", "tier": "backend"},
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "example.com/app:1"}],
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 1,
        },
    })
}
