//! Requests that lost our requester, noted when it happens: a planning sees what stands there then, and not a request that
//! comes and goes in between.

use std::collections::HashMap;
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::{Change, Store};
use parking_lot::Mutex;

use crate::REQUESTER;

/// What was lost since it was last taken, by namespace and name of the request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses(Arc<Mutex<HashMap<(String, String), Lost>>>);

impl Losses {
    /// Notes what these requests lose from now on.
    pub(crate) fn subscribe(&self, requests: &Store<EvictionRequest>) {
        let losses = self.0.clone();
        requests.subscribe(move |change| {
            if let (Some(lost), Some(request)) = (Lost::by(change), change.latest()) {
                let key = (request.metadata.namespace.clone(), request.metadata.name.clone());
                losses.lock().insert(key, lost);
            }
        });
    }

    /// Takes what was noted.
    pub(crate) fn take(&self) -> HashMap<(String, String), Lost> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A request that lost our requester before it had ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// UID of the request.
    pub(crate) request: String,
    /// Name of the pod that it targets.
    pub(crate) target: String,
    /// Whether it was deleted, and not only withdrawn.
    pub(crate) deleted: bool,
}

impl Lost {
    /// What a change took from us, by whomever it was made.
    pub fn by(change: &Change<EvictionRequest>) -> Option<Self> {
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
        lost.then(|| Self { request: old.metadata.uid.clone(), target, deleted })
    }
}
