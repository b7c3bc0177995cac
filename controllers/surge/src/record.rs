//! The record of a surge: what was added to a workload's replicas, and for which pods. It is an annotation of the
//! Deployment and is written in the same update as the replicas, so that one is never there without the other.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Key of the annotation.
pub const RECORD: &str = "surge.coordination.k8s.io/record";

/// A surge that stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SurgeRecord {
    /// How many replicas were added.
    pub delta: i32,
    /// `spec.replicas` as it was written, with the delta.
    pub replicas: i32,
    /// UIDs of the pods that are to be evicted, one for each replica that was added.
    pub pods: BTreeSet<String>,
    /// When the surge came to have these pods.
    pub since: Timestamp,
}

/// The annotation as it is found on a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FoundRecord {
    /// There is none.
    #[default]
    Absent,
    /// It stands.
    Valid(SurgeRecord),
    /// It cannot be read, or contradicts itself; the text says how. Nothing is taken back by it.
    Broken(String),
}

impl SurgeRecord {
    /// The record of the replicas that these pods are given beyond `base`, as of now.
    pub fn new(base: i32, pods: BTreeSet<String>, now: Timestamp) -> Self {
        let delta = i32::try_from(pods.len()).unwrap_or(i32::MAX);
        Self { delta, replicas: base.saturating_add(delta), pods, since: now }
    }

    /// The value of the annotation.
    pub fn annotation(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// How many replicas are to be taken back from a Deployment that has this many now: the delta, but never so many that
    /// it has fewer than it had before the surge. Who has set a lower number since has taken the surge back already.
    pub fn to_take_back(&self, replicas: i32) -> i32 {
        let base = self.replicas - self.delta;
        replicas.saturating_sub(base).clamp(0, self.delta)
    }

    fn contradiction(&self) -> Option<&'static str> {
        if usize::try_from(self.delta).ok() != Some(self.pods.len()) || self.pods.is_empty() {
            return Some("delta is not the number of pods");
        }
        (self.replicas <= self.delta).then_some("replicas is not above delta")
    }
}

impl FoundRecord {
    /// Reads an annotation.
    pub fn read(annotation: Option<&str>) -> Self {
        let Some(text) = annotation else { return Self::Absent };
        match serde_json::from_str::<SurgeRecord>(text) {
            Ok(record) => match record.contradiction() {
                None => Self::Valid(record),
                Some(why) => Self::Broken(why.to_owned()),
            },
            Err(error) => Self::Broken(error.to_string()),
        }
    }

    /// The record, if it can be read.
    pub fn valid(&self) -> Option<&SurgeRecord> {
        match self {
            Self::Valid(record) => Some(record),
            Self::Absent | Self::Broken(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(base: i32, pods: &[&str]) -> SurgeRecord {
        SurgeRecord::new(base, pods.iter().map(|pod| (*pod).to_owned()).collect(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let written = record(3, &["a", "b"]);
        assert_eq!((written.delta, written.replicas), (2, 5));
        assert_eq!(FoundRecord::read(Some(&written.annotation())), FoundRecord::Valid(written));
        assert_eq!(FoundRecord::read(None), FoundRecord::Absent);
    }

    #[test]
    fn a_record_that_contradicts_itself_is_broken() {
        for text in [
            "",
            "null",
            "2",
            r#"{"delta":1}"#,
            r#"{"delta":0,"replicas":1,"pods":[],"since":"2026-01-01T00:00:00Z"}"#,
            r#"{"delta":2,"replicas":3,"pods":["a"],"since":"2026-01-01T00:00:00Z"}"#,
            r#"{"delta":2,"replicas":3,"pods":["a","a"],"since":"2026-01-01T00:00:00Z"}"#,
            r#"{"delta":-1,"replicas":3,"pods":["a"],"since":"2026-01-01T00:00:00Z"}"#,
            r#"{"delta":1,"replicas":1,"pods":["a"],"since":"2026-01-01T00:00:00Z"}"#,
            r#"{"delta":1,"replicas":2,"pods":["a"],"since":"yesterday"}"#,
            r#"{"delta":1,"replicas":2,"pods":["a"],"since":"2026-01-01T00:00:00Z","more":1}"#,
        ] {
            assert!(matches!(FoundRecord::read(Some(text)), FoundRecord::Broken(_)), "{text}");
        }
    }

    #[test]
    fn a_surge_is_taken_back_as_a_delta_and_never_below_what_was_there_before() {
        let surge = record(3, &["a", "b"]);
        for (replicas, back) in [(5, 2), (9, 2), (4, 1), (3, 0), (2, 0), (0, 0)] {
            assert_eq!(surge.to_take_back(replicas), back, "of {replicas}");
        }
    }
}
