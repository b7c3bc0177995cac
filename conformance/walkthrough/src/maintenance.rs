//! The maintenance of the playground: created in Drain, followed until it is drained, moved to Complete.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use drydock_api::node_maintenance::{DrainPlanEntry, NodeMaintenance};
use drydock_testkit::cluster::is_schedulable;
use drydock_testkit::kinds::eviction_request_resource;
use drydock_testkit::wait::until;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::display::Display;
use super::screen::Screen;

/// Its name.
pub const NAME: &str = "rack-1";
/// How long the whole drain may take, faults included.
const LIMIT: Duration = Duration::from_secs(1_800);

/// One maintenance over a few nodes.
pub struct Maintenance {
    /// The nodes.
    pub nodes: Vec<String>,
    /// The one among them that a person had cordoned before.
    pub cordoned: String,
    client: Client,
    api: Api<DynamicObject>,
}

/// What its status said while it drained.
#[derive(Default)]
pub struct SeenStatus {
    /// Messages of blockers, by reason.
    pub blockers: BTreeMap<String, Vec<String>>,
}

impl Maintenance {
    /// A maintenance of these nodes.
    pub fn new(client: Client, nodes: Vec<String>, cordoned: String) -> Maintenance {
        let kind = GroupVersionKind::gvk(drydock_api::GROUP, drydock_api::VERSION, "NodeMaintenance");
        let resource = ApiResource::from_gvk_with_plural(&kind, drydock_api::node_maintenance::RESOURCE);
        Maintenance { nodes, cordoned, api: Api::all_with(client.clone(), &resource), client }
    }

    /// Creates it in Drain and shows it until Drained is True.
    pub async fn drain(&self, screen: &Screen) -> Result<SeenStatus> {
        self.api.create(&PostParams::default(), &self.object()?).await.context("creating the maintenance")?;
        let mut seen = SeenStatus::default();
        match tokio::time::timeout(LIMIT, self.follow(screen, &mut seen)).await {
            Ok(followed) => followed.map(|()| seen),
            Err(_) => bail!("not drained within {LIMIT:?}:\n{}", self.state().await?),
        }
    }

    /// What its status says, and what that of each eviction request says.
    async fn state(&self) -> Result<String> {
        let maintenance = self.api.get(NAME).await?;
        let requests: Api<DynamicObject> = Api::all_with(self.client.clone(), &eviction_request_resource());
        let requests = requests.list(&ListParams::default()).await?;
        let lines = [maintenance].into_iter().chain(requests);
        let lines = lines.map(|object| format!("{}: {}", object.name_any(), object.data["status"]));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    /// Its plan as the API server completed it.
    pub async fn plan(&self) -> Result<Vec<DrainPlanEntry>> {
        let stored: NodeMaintenance =
            serde_json::from_value(serde_json::to_value(self.api.get(NAME).await?)?)?;
        Ok(stored.spec.drain_plan)
    }

    /// Moves it to Complete and waits until its nodes are released and its finalizer is gone.
    pub async fn complete(&self) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"stage": "Complete"}}));
        self.api.patch(NAME, &PatchParams::default(), &patch).await.context("completing the maintenance")?;
        let released = |object: Option<&DynamicObject>| {
            object.is_some_and(|found| found.metadata.finalizers.as_ref().is_none_or(Vec::is_empty))
        };
        until(self.api.clone(), NAME, LIMIT, "released", released).await?;
        let nodes: Api<Node> = Api::all(self.client.clone());
        for name in self.nodes.iter().filter(|name| **name != self.cordoned) {
            let free =
                |node: Option<&Node>| node.is_some_and(|node| is_schedulable(node) && !is_tainted(node));
            until(nodes.clone(), name, LIMIT, "schedulable and without our taint", free).await?;
        }
        Ok(())
    }

    /// Deletes it when it has been released. Returns its last state, of which its watchers are told: what became of the last
    /// requests may be counted until then.
    pub async fn delete(&self) -> Result<NodeMaintenance> {
        let from = self.api.get(NAME).await?.resource_version().context("no version")?;
        let only = WatchParams::default().fields(&format!("metadata.name={NAME}"));
        let mut events = self.api.watch(&only, &from).await?.boxed();
        self.api.delete(NAME, &DeleteParams::default()).await.context("deleting the maintenance")?;
        let deleted = async {
            while let Some(event) = events.try_next().await? {
                if let WatchEvent::Deleted(last) = event {
                    return Ok(serde_json::from_value(serde_json::to_value(last)?)?);
                }
            }
            bail!("the watch ended")
        };
        tokio::time::timeout(LIMIT, deleted).await.context("it is not deleted")?
    }

    async fn follow(&self, screen: &Screen, seen: &mut SeenStatus) -> Result<()> {
        let mut display = Display::new(screen, NAME, &self.nodes);
        let mut states = watcher::watch_object(self.api.clone(), NAME).default_backoff().boxed();
        while let Some(state) = states.next().await {
            // An error means that a server is away; the watch goes on when it is back.
            let Ok(Some(object)) = state else { continue };
            let current: NodeMaintenance = serde_json::from_value(serde_json::to_value(object)?)?;
            seen.note(&current);
            display.show(&current);
            if is_drained(&current) {
                display.drained();
                return Ok(());
            }
        }
        bail!("the watch ended")
    }

    fn object(&self) -> Result<DynamicObject> {
        let selected = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": self.nodes});
        Ok(serde_json::from_value(json!({
            "apiVersion": drydock_api::API_VERSION, "kind": "NodeMaintenance", "metadata": {"name": NAME},
            "spec": {
                "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [selected]}]},
                "stage": "Drain",
                // Two tiers of our own before those that every plan has.
                "drainPlan": [{"podPriority": 1000}, {"podPriority": 100_000}],
                "reason": "firmware update of rack 1",
            },
        }))?)
    }
}

impl SeenStatus {
    fn note(&mut self, current: &NodeMaintenance) {
        for blocker in current.status.node_statuses.iter().flat_map(|node| &node.blockers) {
            let messages = self.blockers.entry(blocker.reason.clone()).or_default();
            if !messages.contains(&blocker.message) {
                messages.push(blocker.message.clone());
            }
        }
    }
}

/// Whether a taint of ours is on the node.
pub fn is_tainted(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(|taint| taint.key.starts_with("nodemaintenance.k8s.io/"))
}

fn is_drained(current: &NodeMaintenance) -> bool {
    current.status.conditions.iter().any(|c| c.type_ == "Drained" && c.status == "True")
}
