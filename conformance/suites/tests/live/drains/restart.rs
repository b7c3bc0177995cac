//! A controller manager that is killed in the middle of a drain.

use anyhow::{Context, Result, ensure};
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::{eviction_requests, node_maintenances};
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::{until, until_some};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::{LIMIT, budget, labelled, pod, priority_class};

/// The pods and their priorities, in the order in which they have to leave. The first plan has its second
/// entry after the second pod, the other plan after the first and the third.
const TIERS: [(&str, i32); 3] = [("p400", 400), ("p900", 900), ("p4000", 4000)];

/// The current entry of a maintenance that another one limits was taken from the drain targets, and was one entry too
/// far: two tiers left together.
#[tokio::test(flavor = "multi_thread")]
async fn the_order_holds_although_the_manager_is_killed_in_every_tier() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    let drain = Drain::begin(&drydock).await?;
    for (tier, (name, _)) in TIERS.iter().enumerate() {
        drain.asked(name).await?;
        ensure!(drydock.kill_manager()?, "there was no manager");
        drydock.start_manager().await?;
        drain.is_planned(tier).await?;
        for (later, _) in TIERS.iter().skip(tier + 1) {
            ensure!(!drain.is_asked(later).await?, "{later} is asked to leave while {name} is there");
        }
        drain.let_go(name).await?;
    }
    Ok(())
}

/// A node with a pod a tier, each kept by a budget, under two maintenances.
struct Drain {
    client: Client,
    pods: Api<Pod>,
    budgets: Api<PodDisruptionBudget>,
}

impl Drain {
    async fn begin(drydock: &Drydock) -> Result<Self> {
        let client = drydock.host.client().await?;
        let nodes = create_nodes(&client, "restart", 1).await?;
        let node = nodes.first().context("no node")?;
        let drain = Self {
            pods: Api::namespaced(client.clone(), "default"),
            budgets: Api::namespaced(client.clone(), "default"),
            client,
        };
        for (name, priority) in TIERS {
            priority_class(&drain.client, name, priority).await?;
            drain.budgets.create(&PostParams::default(), &serde_json::from_value(budget(name))?).await?;
            pod(&drain.pods, name, node, name, json!({"app": name})).await?;
        }
        let kubectl = Kubectl::new(&drydock.host);
        kubectl.ok(&["label", "node", node, "example.com/restart="]).await?;
        let plan = |priorities: &[i32]| priorities.iter().map(|p| json!({"podPriority": p})).collect();
        kubectl.apply(&labelled("m1", "example.com/restart", &plan(&[500]))).await?;
        kubectl.apply(&labelled("m2", "example.com/restart", &plan(&[1000, 5000]))).await?;
        Ok(drain)
    }

    /// Whether a request asks a pod to leave.
    async fn is_asked(&self, pod: &str) -> Result<bool> {
        let requests = eviction_requests(&self.client, "default").list(&ListParams::default()).await?;
        Ok(requests.iter().any(|request| request.data["spec"]["target"]["pod"]["name"] == pod))
    }

    async fn asked(&self, pod: &str) -> Result<()> {
        let late = || format!("{pod} is not asked to leave");
        until_some(LIMIT, late, async || Ok(self.is_asked(pod).await?.then_some(()))).await
    }

    /// Waits until the manager that runs now has seen both maintenances, and so has planned.
    async fn is_planned(&self, tier: usize) -> Result<()> {
        let maintenances = node_maintenances(&self.client);
        for name in ["m1", "m2"] {
            let change = json!({"spec": {"reason": format!("tier {tier}")}});
            let changed = maintenances.patch(name, &PatchParams::default(), &Patch::Merge(change)).await?;
            let generation = changed.metadata.generation;
            let seen = |object: Option<&DynamicObject>| {
                object.is_some_and(|o| o.data["status"]["observedGeneration"].as_i64() == generation)
            };
            until(maintenances.clone(), name, LIMIT, "planned", seen).await?;
        }
        Ok(())
    }

    async fn let_go(&self, pod: &str) -> Result<()> {
        self.budgets.delete(pod, &DeleteParams::default()).await?;
        let gone = |pod: Option<&Pod>| pod.is_none();
        until(self.pods.clone(), pod, LIMIT, "gone", gone).await.map(drop)
    }
}
