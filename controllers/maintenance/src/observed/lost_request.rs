//! Requests that lost our requester: one may come and go between two plannings.

use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::ObjectChange;

use crate::REQUESTER;
use crate::observed::asked_again::AskedAgain;

/// A request that lost our requester before it had ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostRequest {
    /// UID of the request.
    pub(crate) request: String,
    /// Name of the pod that it targets.
    pub(crate) target: String,
    /// Whether it was deleted, and not only withdrawn.
    pub(crate) deleted: bool,
    /// What the next request says of this one and those before it.
    pub(crate) asked_again: Option<AskedAgain>,
}

impl LostRequest {
    /// What a change took from us, by whomever it was made.
    pub(crate) fn by(change: &ObjectChange<EvictionRequest>) -> Option<Self> {
        let is_open = |request: &EvictionRequest| {
            request.has_requester(REQUESTER) && !request.is_being_deleted() && !request.is_finished()
        };
        let old = change.old.as_ref().filter(|old| is_open(old))?;
        let new = change.new.as_ref();
        let same = new.filter(|new| new.metadata.uid == old.metadata.uid);
        let deleted = same.is_none_or(|new| new.is_being_deleted());
        // One that was made anew while nobody watched may be ours again.
        let lost = new.is_none_or(|new| !new.has_requester(REQUESTER)) || (deleted && same.is_some());
        let target = old.spec.target.pod.as_ref().map(|pod| pod.name.clone()).unwrap_or_default();
        let asked_again = AskedAgain::after(old);
        lost.then(|| Self { request: old.metadata.uid.clone(), target, deleted, asked_again })
    }
}
