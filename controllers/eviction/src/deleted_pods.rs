//! Pods of which a DELETED event has been seen while there was a request for them.
//!
//! A pod that a cache lacks may exist all the same: the cache may lag, or a list may have missed it. So a request ends
//! only after a live read. A DELETED event makes that read unnecessary, because no other pod will ever have this UID.

use std::collections::HashSet;
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::{Cacheable, ObjectChange, ObjectKey};
use parking_lot::Mutex;

/// Pods by the keys of their requests: namespace and UID. At most as many as there are requests. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeletedPods(Arc<Mutex<HashSet<ObjectKey>>>);

impl DeletedPods {
    /// Records that a pod was deleted. Its request exists.
    pub(crate) fn add(&self, request: &ObjectKey) {
        self.0.lock().insert(request.clone());
    }

    /// Whether the pod of this request was deleted.
    pub(crate) fn contains(&self, request: &ObjectKey) -> bool {
        self.0.lock().contains(request)
    }

    /// Forgets the pod of a request that is gone.
    pub(crate) fn forget(&self, request: &ObjectKey) {
        self.0.lock().remove(request);
    }

    /// Forgets the pod of the request, if the change says that it is gone.
    pub(crate) fn forget_pod_of(&self, change: &ObjectChange<EvictionRequest>) {
        if let (Some(gone), None) = (&change.old, &change.new) {
            self.forget(&gone.key());
        }
    }
}
