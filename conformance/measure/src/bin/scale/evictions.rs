//! The evictions that the host accepted, from its audit log.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result};
use drydock_testkit::host::audit::{self, LoggedRequest};

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

    /// Milliseconds from each opening to the eviction that follows in its namespace, in order. The host's own answer is
    /// no part of them. One that came with the same event, before the watch showed it, counts as zero.
    pub fn latencies(&self, opened: &[Opening]) -> Result<Vec<f64>> {
        let mut latencies = opened
            .iter()
            .map(|opening| Ok(1000.0 * self.seconds_after(opening)?))
            .collect::<Result<Vec<f64>>>()?;
        latencies.sort_by(f64::total_cmp);
        Ok(latencies)
    }

    /// Seconds from an opening to the eviction that follows.
    pub fn seconds_after(&self, opening: &Opening) -> Result<f64> {
        let next = self.0.iter().find(|request| {
            let is_later = request.answered.is_some_and(|answered| answered >= opening.at);
            is_later && request.object_ref.namespace == opening.namespace
        });
        let received = next.and_then(|request| request.received);
        let received = received.with_context(|| format!("no eviction follows in {}", opening.namespace))?;
        Ok(received.duration_since(opening.at).as_secs_f64().max(0.0))
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
    use jiff::Timestamp;
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
    fn an_opening_is_answered_by_the_next_eviction_of_its_namespace() {
        let evictions =
            Evictions(vec![eviction(1_000, "a", "1"), eviction(2_000, "b", "2"), eviction(2_100, "a", "3")]);
        let opening = |at_ms, namespace: &str| Opening { namespace: namespace.to_owned(), at: at(at_ms) };
        assert_eq!(evictions.latencies(&[opening(2_050, "a"), opening(1_005, "a")]).unwrap(), [0.0, 50.0]);
        assert!(evictions.latencies(&[opening(2_050, "b")]).is_err());
    }

    #[test]
    fn evictions_of_held_pods_are_counted() {
        let evictions = Evictions(vec![eviction(1, "a", "1"), eviction(2, "a", "2"), eviction(3, "b", "4")]);
        let pod = |name: &str| RequestedPod { namespace: "a".into(), name: name.into(), uid: String::new() };
        assert_eq!(evictions.of(&[pod("2"), pod("4")]), 1);
    }
}
