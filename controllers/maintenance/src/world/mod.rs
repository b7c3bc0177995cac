//! One reading of the caches, consistent enough for a step.

pub(crate) mod recorded;
mod view;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::node_maintenance::NodeMaintenance;
use drydock_runtime::{HostCaches, Node, Pod};

use crate::REQUESTER;
use crate::observed::our_requests::RequestMap;
use crate::observed::{ChangesSince, OurRequests, PodLocation};

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
    /// Our requests, and those of others for these pods.
    pub requests: RequestMap,
    /// Where the pods of the requests that carry our entry are, by UID. A pod that is gone is missing.
    pub located: Arc<HashMap<String, PodLocation>>,
    /// Nodes that could not be cordoned when it was last tried, with the words of the refusal.
    pub refused: HashMap<String, String>,
    /// The changes since the last planning.
    pub(crate) since: ChangesSince,
}

impl World {
    /// Reads the caches. Pods are read only of nodes for which `reads_pods` holds.
    pub(crate) fn read(
        caches: &HostCaches,
        ours: &OurRequests,
        reads_pods: impl Fn(&Node, &[Arc<NodeMaintenance>]) -> bool,
    ) -> Self {
        let maintenances = caches.maintenances.all();
        let nodes: BTreeMap<String, Arc<Node>> =
            caches.nodes.all().into_iter().map(|n| (n.name.clone(), n)).collect();
        // Requests are read before pods, so that a request that has ended because its pod is gone is not seen
        // beside that pod.
        let mut requests = ours.all();
        let watched = nodes.values().filter(|n| reads_pods(n, &maintenances));
        let mut pods: HashMap<_, _> =
            watched.map(|n| (n.name.clone(), caches.pods.on_node(&n.name))).collect();
        for of_node in pods.values_mut() {
            let seen = std::mem::take(of_node).into_iter();
            *of_node = seen.filter_map(|pod| after_its_request(caches, pod, &mut requests)).collect();
        }
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

/// Adds the request of others for a pod, and returns the pod as it is after that, if it is there: its request was read late,
/// and may have ended because the pod is gone or terminal.
fn after_its_request(caches: &HostCaches, pod: Arc<Pod>, requests: &mut RequestMap) -> Option<Arc<Pod>> {
    let key = (pod.namespace.clone(), pod.uid.clone());
    if requests.contains_key(&key) {
        return Some(pod);
    }
    let Some(request) = caches.requests.find(&pod.namespace, &pod.uid) else { return Some(pod) };
    requests.insert(key, request);
    let present = caches.pods.find(&pod.namespace, &pod.name);
    present.filter(|present| (&present.uid, &present.node_name) == (&pod.uid, &pod.node_name))
}

fn located(caches: &HostCaches, request: &EvictionRequest) -> Option<PodLocation> {
    caches.pods.by_uid(&request.metadata.name).map(|pod| PodLocation::of(&pod))
}

#[cfg(test)]
mod tests {
    use drydock_runtime::Cacheable;
    use drydock_runtime::cache::PodPhase;

    use super::*;

    /// With 150,000 requests of others each planning copied all of them, though none was for a pod that is drained.
    #[test]
    fn requests_of_others_are_read_where_pods_are_looked_at() {
        let (caches, ours) = (HostCaches::default(), OurRequests::default());
        let node = |name: &str| Node { name: name.into(), uid: name.into(), ..Node::default() };
        let pod = |name: &str, node: &str| Pod {
            name: name.into(),
            namespace: "ns".into(),
            uid: name.into(),
            node_name: node.into(),
            ..Pod::default()
        };
        for (name, at) in [("p", "drained"), ("q", "other")] {
            caches.nodes.apply(node(at));
            caches.pods.apply(pod(name, at));
            caches.requests.apply(EvictionRequest::named("ns", name));
        }
        let world = World::read(&caches, &ours, |node, _| node.name == "drained");
        let keys: Vec<_> = world.requests.keys().map(|(_, name)| name.as_str()).collect();
        assert_eq!((keys, world.pods.len(), world.pods["drained"].len()), (vec!["p"], 1, 1));
        // By then the pod has ended, and its request with it.
        let (running, mut requests) = (Arc::new(pod("p", "drained")), RequestMap::new());
        caches.pods.apply(Pod { phase: PodPhase::Succeeded, ..pod("p", "drained") });
        let present = after_its_request(&caches, running.clone(), &mut requests).map(|pod| pod.phase);
        assert_eq!(present, Some(PodPhase::Succeeded));
        caches.pods.delete(&running.key());
        requests.clear();
        assert_eq!(after_its_request(&caches, running, &mut requests), None);
        ours.subscribe(&caches.requests);
        assert!(World::read(&caches, &ours, |_, _| false).requests.is_empty());
    }
}
