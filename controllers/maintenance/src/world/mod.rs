//! One reading of the caches, consistent enough for a step.

pub(crate) mod recorded;
mod view;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::node_maintenance::NodeMaintenance;
use drydock_runtime::{HostCaches, Node, Pod};

use crate::REQUESTER;
use crate::observed::{ChangesSince, PodLocation};

pub(crate) use view::{PlannedDrains, STAYS_OWN, WorldView, selects};

/// Everything that a step reads, beside its memory.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// All maintenances, ordered by name.
    pub maintenances: Vec<Arc<NodeMaintenance>>,
    /// All nodes by name.
    pub nodes: BTreeMap<String, Arc<Node>>,
    /// Pods by node.
    pub pods: HashMap<String, Vec<Arc<Pod>>>,
    /// Pods that are bound to no node and for which the scheduler finds none.
    pub unscheduled: Vec<Arc<Pod>>,
    /// All requests by namespace and name, the name being the pod's UID.
    pub requests: HashMap<(String, String), Arc<EvictionRequest>>,
    /// Where the pods of the requests that carry our entry are, by UID. A pod that is gone is missing.
    pub located: Arc<HashMap<String, PodLocation>>,
    /// Nodes that could not be cordoned when it was last tried, with the words of the refusal.
    pub refused: HashMap<String, String>,
    /// The changes since the last planning.
    pub(crate) since: ChangesSince,
}

impl World {
    /// Reads the caches. Pods are read only of nodes for which `reads_pods` holds.
    pub fn read(caches: &HostCaches, reads_pods: impl Fn(&Node, &[Arc<NodeMaintenance>]) -> bool) -> Self {
        let maintenances = caches.maintenances.all();
        let nodes: BTreeMap<String, Arc<Node>> =
            caches.nodes.all().into_iter().map(|n| (n.name.clone(), n)).collect();
        // Requests are read before pods, so that a request that has ended because its pod is gone is not seen
        // beside that pod.
        let key = |r: &EvictionRequest| (r.metadata.namespace.clone(), r.metadata.name.clone());
        let requests: HashMap<_, _> = caches.requests.all().into_iter().map(|r| (key(&r), r)).collect();
        let watched = nodes.values().filter(|n| reads_pods(n, &maintenances));
        let pods = watched.map(|n| (n.name.clone(), caches.pods.on_node(&n.name))).collect();
        let unbound = caches.pods.on_node("").into_iter();
        let unscheduled =
            unbound.filter(|pod| pod.unschedulable.is_some() && !pod.is_terminating()).collect();
        let ours = requests.values().filter(|r| r.has_requester(REQUESTER));
        let located = ours
            .filter_map(|r| Some((r.metadata.name.clone(), located(caches, r)?)))
            .collect::<HashMap<_, _>>();
        let located = Arc::new(located);
        Self { maintenances, nodes, pods, unscheduled, requests, located, ..Self::default() }
    }

    /// The request for a pod.
    pub fn request(&self, pod: &Pod) -> Option<&Arc<EvictionRequest>> {
        self.requests.get(&(pod.namespace.clone(), pod.uid.clone()))
    }
}

fn located(caches: &HostCaches, request: &EvictionRequest) -> Option<PodLocation> {
    caches.pods.by_uid(&request.metadata.name).map(|pod| PodLocation::of(&pod))
}
