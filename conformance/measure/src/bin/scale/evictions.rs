//! The evictions that the host accepted, from its audit log.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::Path;

use anyhow::{Context, Result};
use drydock_testkit::host::audit::{self, LoggedRequest};
use jiff::Timestamp;

use super::openings::Opening;
use super::workload::RequestedPod;

/// The evictions that the host accepted, in the order in which it received them.
pub struct Evictions(Vec<LoggedRequest>);

impl Evictions {
    /// Reads the log.
    pub fn read(log: &Path) -> Result<Evictions> {
        let mut all = audit::requests(log)?;
        all.retain(|request| request.is_about("pods/eviction") && request.succeeded());
        all.sort_by_key(|request| request.received);
        Ok(Evictions(all))
    }

    /// Seconds from each opening to the eviction that it allowed: an opening of a namespace allows one, so that the first
    /// belongs to the first. The host's own answer is no part of them. An eviction that the host received before our watch
    /// showed the opening counts as zero.
    pub fn seconds_after(&self, opened: &[Opening]) -> Result<Vec<f64>> {
        let mut of_namespace = BTreeMap::<&str, VecDeque<Timestamp>>::new();
        for request in &self.0 {
            of_namespace.entry(&request.object_ref.namespace).or_default().extend(request.received);
        }
        let seconds = |Opening { namespace, at }: &Opening| {
            let next = of_namespace.get_mut(&**namespace).and_then(VecDeque::pop_front);
            let received = next.with_context(|| format!("no eviction follows in {namespace}"))?;
            Ok(received.duration_since(*at).as_secs_f64().max(0.0))
        };
        opened.iter().map(seconds).collect()
    }

    /// UIDs that were evicted more than once.
    pub fn twice(&self) -> Vec<String> {
        audit::evicted_twice(&self.0)
    }

    /// How many of these pods were evicted.
    pub fn of(&self, pods: &[RequestedPod]) -> usize {
        let names: HashSet<(&str, &str)> =
            pods.iter().map(|pod| (pod.namespace.as_str(), pod.name.as_str())).collect();
        let is_one = |r: &&LoggedRequest| {
            names.contains(&(r.object_ref.namespace.as_str(), r.object_ref.name.as_str()))
        };
        self.0.iter().filter(is_one).count()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    /// Received then and answered 10 ms later.
    fn eviction(milliseconds: i64, namespace: &str, uid: &str) -> LoggedRequest {
        serde_json::from_value(json!({
            "verb": "create", "responseStatus": {"code": 201},
            "objectRef": {"resource": "pods", "subresource": "eviction", "namespace": namespace, "name": uid},
            "requestObject": {"deleteOptions": {"preconditions": {"uid": uid}}},
            "requestReceivedTimestamp": at(milliseconds), "stageTimestamp": at(milliseconds + 10),
        }))
        .unwrap()
    }

    #[test]
    fn an_opening_is_answered_by_the_next_eviction_of_its_namespace_however_late_it_was_seen() {
        let evictions =
            Evictions(vec![eviction(1_000, "a", "1"), eviction(2_000, "b", "2"), eviction(2_100, "a", "3")]);
        let opening = |at_ms, namespace: &str| Opening { namespace: namespace.to_owned(), at: at(at_ms) };
        let opened = [opening(1_500, "a"), opening(2_050, "a")];
        assert_eq!(evictions.seconds_after(&opened).unwrap(), [0.0, 0.05]);
        let once_more = [opening(1_000, "b"), opening(2_000, "b")];
        assert!(evictions.seconds_after(&once_more).is_err());
    }

    #[test]
    fn evictions_of_held_pods_are_counted() {
        let evictions = Evictions(vec![eviction(1, "a", "1"), eviction(2, "a", "2"), eviction(3, "b", "4")]);
        let pod = |name: &str| RequestedPod { namespace: "a".into(), name: name.into(), uid: String::new() };
        assert_eq!(evictions.of(&[pod("2"), pod("4")]), 1);
    }
}
