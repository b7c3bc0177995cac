//! What is noted between two plannings: a planning sees what stands there then, and not what came and went in between.

pub(crate) mod asked_again;
mod lost_request;
mod pod_location;
pub(crate) mod request_transition;
mod uncordoned;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use drydock_api::node_maintenance::PodType;
use drydock_runtime::{HostCaches, Refusals};
use parking_lot::Mutex;

pub(crate) use lost_request::LostRequest;
pub use pod_location::PodLocation;
pub(crate) use request_transition::RequestTransition;
pub(crate) use uncordoned::uncordoned_by;

/// What watches and writes note for the next planning.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObservedChanges {
    since: Arc<Mutex<ChangesSince>>,
    /// Nodes that could not be cordoned when it was last tried.
    pub(crate) refusals: Arc<Refusals>,
}

/// What has happened since the last planning.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangesSince {
    /// Requests that lost our requester, by namespace and name.
    pub(crate) lost: HashMap<(String, String), LostRequest>,
    /// What became of our requests.
    pub(crate) steps: Vec<RequestTransition>,
    /// How often others made nodes schedulable; those alone that are under maintenance.
    pub(crate) uncordoned: HashMap<String, usize>,
    /// Nodes that a live read has shown to have no pods up to a type.
    pub(crate) confirmed: HashSet<(String, PodType)>,
}

impl ObservedChanges {
    /// Notes the changes of these caches from now on.
    pub(crate) fn subscribe(&self, caches: &HostCaches) {
        let since = self.since.clone();
        caches.requests.subscribe(move |change| {
            let lost = LostRequest::by(change).zip(change.latest());
            let step = RequestTransition::of(change);
            if lost.is_none() && step.is_none() {
                return;
            }
            let mut since = since.lock();
            since.steps.extend(step);
            since.lost.extend(lost.map(|(lost, request)| {
                ((request.metadata.namespace.clone(), request.metadata.name.clone()), lost)
            }));
        });
        let since = self.since.clone();
        caches.nodes.subscribe(move |change| {
            if let Some(node) = uncordoned_by(change) {
                *since.lock().uncordoned.entry(node.name.clone()).or_default() += 1;
            }
        });
    }

    /// A live read has shown this node to have no pods up to this type.
    pub(crate) fn confirm(&self, node: &str, last: PodType) {
        self.since.lock().confirmed.insert((node.to_owned(), last));
    }

    /// Takes what was noted.
    pub(crate) fn take(&self) -> ChangesSince {
        std::mem::take(&mut *self.since.lock())
    }
}
