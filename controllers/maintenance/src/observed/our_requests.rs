//! The requests that are ours, so that a planning does not look at those of others: there may be a hundred thousand.

use std::collections::HashMap;
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::Store;
use parking_lot::Mutex;

use crate::REQUESTER;

/// Requests by namespace and name, the name being the pod's UID.
pub type RequestMap = HashMap<(String, String), Arc<EvictionRequest>>;

/// The requests that have our requester, and those that have had it and are there: what we have left is remembered until it
/// is gone. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct OurRequests(Arc<Mutex<RequestMap>>);

impl OurRequests {
    /// Follows the cache from now on.
    pub(crate) fn subscribe(&self, requests: &Store<EvictionRequest>) {
        let ours = self.0.clone();
        requests.subscribe(move |change| {
            let Some(key) = change.latest().map(|request| key_of(request)) else { return };
            let mut ours = ours.lock();
            let was_ours = |new: &EvictionRequest| {
                ours.get(&key).is_some_and(|before| before.metadata.uid == new.metadata.uid)
            };
            let new = change.new.clone().filter(|new| new.has_requester(REQUESTER) || was_ours(new));
            match new {
                Some(new) => ours.insert(key, new),
                None => ours.remove(&key),
            };
        });
    }

    /// All of them.
    pub(crate) fn all(&self) -> RequestMap {
        // The handler waits for the lock: the keys are copied without it.
        let ours: Vec<_> = self.0.lock().values().cloned().collect();
        ours.into_iter().map(|request| (key_of(&request), request)).collect()
    }
}

fn key_of(request: &EvictionRequest) -> (String, String) {
    (request.metadata.namespace.clone(), request.metadata.name.clone())
}

#[cfg(test)]
mod tests {
    use drydock_api::eviction_request::Requester;
    use drydock_runtime::{Cacheable, HostCaches};

    use super::*;

    fn request(uid: &str, requester: &str) -> EvictionRequest {
        let mut request = EvictionRequest::named("ns", "pod");
        request.metadata.uid = uid.into();
        request.spec.requesters = vec![Requester { name: requester.into() }];
        request
    }

    #[test]
    fn a_request_that_was_ours_stays_until_it_is_gone_and_those_of_others_never_come() {
        let (caches, ours) = (HostCaches::default(), OurRequests::default());
        ours.subscribe(&caches.requests);
        let count_after = |request: EvictionRequest| {
            caches.requests.apply(request);
            ours.all().len()
        };
        assert_eq!(count_after(request("1", "other.example.com")), 0);
        assert_eq!(count_after(request("1", REQUESTER)), 1);
        assert_eq!(count_after(request("1", "other.example.com")), 1, "we have left it");
        assert_eq!(count_after(request("2", "other.example.com")), 0, "it is another one");
        assert_eq!(count_after(request("2", REQUESTER)), 1);
        caches.requests.delete(&request("2", REQUESTER).key());
        assert!(ours.all().is_empty());
    }
}
