//! Changes between two plannings: a planning reads the caches at one moment, and does not see what came and
//! went before.

pub(crate) mod asked_again;
pub(crate) mod our_requests;
pub(crate) mod request_transition;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::node_maintenance::PodType;
use drydock_runtime::cache::node::CORDONED_BY;
use drydock_runtime::{HostCaches, Node, NodeWriteRefusals, ObjectChange, Pod};
use parking_lot::Mutex;

use crate::REQUESTER;
use crate::observed::asked_again::AskedAgain;

pub(crate) use our_requests::OurRequests;
pub(crate) use request_transition::RequestTransition;

/// Most requests for one pod whose turns are kept until the next planning.
const MAX_ENDED: usize = 16;

/// Collects changes from watches and writes for the next planning.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObservedChanges {
    since: Arc<Mutex<ChangesSince>>,
    /// Nodes that could not be cordoned when it was last tried.
    pub(crate) refusals: Arc<NodeWriteRefusals>,
    /// The requests that are ours.
    pub(crate) our_requests: OurRequests,
}

/// The changes since the last planning.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangesSince {
    /// Requests that lost our requester, by namespace and name.
    pub(crate) lost: HashMap<(String, String), LostRequest>,
    /// The changes of our requests that count.
    pub(crate) steps: Vec<RequestTransition>,
    /// How often others made a node schedulable during its maintenance, by node.
    pub(crate) uncordoned: HashMap<String, usize>,
    /// Nodes that a live read has shown to have no pods up to a type.
    pub(crate) confirmed: HashSet<(String, PodType)>,
}

impl ChangesSince {
    /// Notes a request that was lost. Of one for the same pod before it, the turns stay.
    pub(crate) fn note_lost(&mut self, key: (String, String), mut lost: LostRequest) {
        if let Some(before) = self.lost.remove(&key) {
            lost.ended.extend(before.ended);
            lost.ended.truncate(MAX_ENDED);
        }
        self.lost.insert(key, lost);
    }
}

impl ObservedChanges {
    /// Notes the changes of these caches from now on.
    pub(crate) fn subscribe(&self, caches: &HostCaches) {
        self.our_requests.subscribe(&caches.requests);
        let since = self.since.clone();
        caches.requests.subscribe(move |change| {
            let lost = LostRequest::by(change).zip(change.latest());
            let step = RequestTransition::of(change);
            if lost.is_none() && step.is_none() {
                return;
            }
            let mut since = since.lock();
            since.steps.extend(step);
            if let Some((lost, request)) = lost {
                since.note_lost((request.metadata.namespace.clone(), request.metadata.name.clone()), lost);
            }
        });
        let since = self.since.clone();
        caches.nodes.subscribe(move |change| {
            if let Some(node) = uncordoned_by(change) {
                *since.lock().uncordoned.entry(node.name.clone()).or_default() += 1;
            }
        });
    }

    /// Records that a live read has shown this node to have no pods up to this type.
    pub(crate) fn confirm(&self, node: &str, last: PodType) {
        self.since.lock().confirmed.insert((node.to_owned(), last));
    }

    /// Takes what was noted.
    pub(crate) fn take(&self) -> ChangesSince {
        std::mem::take(&mut *self.since.lock())
    }
}

/// The node that others made schedulable during its maintenance: our own change would have removed our annotation
/// too. Between two plannings a node may be uncordoned and cordoned again.
pub(crate) fn uncordoned_by(change: &ObjectChange<Node>) -> Option<&Node> {
    let is_ours = |node: &&Arc<Node>| node.annotations.contains_key(CORDONED_BY);
    let old = change.old.as_ref().filter(is_ours)?;
    let new = change.new.as_ref().filter(is_ours)?;
    (old.unschedulable && !new.unschedulable && old.uid == new.uid).then_some(new)
}

/// Where a pod is, and of which type it is: a request outlives its pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodLocation {
    /// Its node.
    pub node: String,
    /// Its type.
    pub pod_type: PodType,
}

impl PodLocation {
    /// The location of a pod.
    pub fn of(pod: &Pod) -> Self {
        Self { node: pod.node_name.clone(), pod_type: pod.pod_type() }
    }
}

/// A request that lost our requester before it had ended: it may come and go between two plannings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LostRequest {
    /// UID of the request.
    pub(crate) request: String,
    /// Name of the pod that it targets.
    pub(crate) target: String,
    /// Whether it was deleted, and not only withdrawn.
    pub(crate) deleted: bool,
    /// The annotation of the next request, which counts this one.
    pub(crate) asked_again: Option<AskedAgain>,
    /// The request as it was, and those for the same pod before it, if interceptors have had turns.
    pub(crate) ended: Vec<Arc<EvictionRequest>>,
}

impl LostRequest {
    /// Returns the request that a change by any client took from us.
    pub(crate) fn by(change: &ObjectChange<EvictionRequest>) -> Option<Self> {
        let is_open = |request: &EvictionRequest| {
            request.has_requester(REQUESTER) && !request.is_being_deleted() && !request.is_finished()
        };
        let old = change.old.as_ref().filter(|old| is_open(old))?;
        let new = change.new.as_ref();
        let same = new.filter(|new| new.metadata.uid == old.metadata.uid);
        let deleted = same.is_none_or(|new| new.is_being_deleted());
        // A request that was made again while the watch was interrupted may have our requester too.
        let lost = new.is_none_or(|new| !new.has_requester(REQUESTER)) || (deleted && same.is_some());
        let target = old.spec.target.pod.as_ref().map(|pod| pod.name.clone()).unwrap_or_default();
        let asked_again = AskedAgain::after(old);
        let ended = if old.is_taken_up() { vec![old.clone()] } else { Vec::new() };
        lost.then(|| Self { request: old.metadata.uid.clone(), target, deleted, asked_again, ended })
    }
}
