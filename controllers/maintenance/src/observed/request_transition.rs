//! Changes of our requests that the outcomes count. They are noted as they happen, because requests are
//! removed some time after their end.

use std::collections::HashSet;

use drydock_api::eviction_request::{EvictionRequest, transitions};
use drydock_api::node_maintenance::PodType;
use drydock_runtime::ObjectChange;
use jiff::Timestamp;

use super::PodLocation;
use crate::REQUESTER;

/// A change of a request of ours that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestTransition {
    /// UID of the pod.
    pub(crate) pod: String,
    /// Where the pod was; none if no interceptor had its turn yet.
    pub(crate) at: Option<PodLocation>,
    pub(crate) end: Option<RequestEnd>,
    /// How many interceptors lost their turn.
    pub(crate) passed_over: i32,
    /// When the request was made.
    pub(crate) made: Option<Timestamp>,
}

/// How a request ended for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    /// It is Evicted.
    Evicted,
    /// It is Canceled, or our requester is not in it any more.
    Canceled,
    /// It was removed, and its end was not seen.
    Unseen,
}

impl RequestTransition {
    /// Returns what a change means for a request that had our requester; none if it does not count.
    pub(crate) fn of(change: &ObjectChange<EvictionRequest>) -> Option<Self> {
        let old = change.old.as_ref().filter(|old| old.has_requester(REQUESTER) && !old.is_finished())?;
        let new = change.new.as_ref().filter(|new| new.metadata.uid == old.metadata.uid);
        let end = match new {
            None => Some(RequestEnd::Unseen),
            Some(new) if new.is_evicted() => Some(RequestEnd::Evicted),
            Some(new) if new.is_finished() || !new.has_requester(REQUESTER) => Some(RequestEnd::Canceled),
            Some(_) => None,
        };
        let passed_over = new.map_or(0, |new| passed_over(old, new));
        let info = new.unwrap_or(old).status.pod_info.as_ref().filter(|info| !info.node_name.is_empty());
        let at =
            info.map(|info| PodLocation { node: info.node_name.clone(), pod_type: type_of(&info.pod_type) });
        let counts = end.is_some() || passed_over > 0;
        let made = old.metadata.creation_timestamp;
        counts.then(|| Self { pod: old.metadata.name.clone(), at, end, passed_over, made })
    }
}

/// The pod type of this name, which older requests leave out.
fn type_of(name: &str) -> PodType {
    if name.is_empty() { PodType::Default } else { PodType::parse(name).unwrap_or(PodType::Unknown) }
}

/// How many interceptors lost their turn with this change, without having completed it; none if the request
/// has ended, which ends every turn.
fn passed_over(old: &EvictionRequest, new: &EvictionRequest) -> i32 {
    if new.is_finished() {
        return 0;
    }
    let before = old.status.processed_interceptors.iter().map(String::as_str).collect::<HashSet<_>>();
    let count = transitions::passed_over(new).filter(|name| !before.contains(name)).count();
    i32::try_from(count).unwrap_or(i32::MAX)
}
