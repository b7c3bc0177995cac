//! The record of a surge: what was added to a number, and for which pods. It is an annotation of the object that has the
//! number (`spec.replicas` of a Deployment, or `spec.minReplicas` of its autoscaler) and is written in the same update, so
//! that one is never there without the other. drydock-surge-interceptor writes it; the removal of Drydock reads it too.
//!
//! The annotation names the UID of its object. A copy of the object has its annotations and another UID: nothing was added to
//! the copy's number, and nothing is taken back from it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use drydock_api::text::cut;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Most pods that a surge is for at a time. A host takes an annotation with 50,000 short names.
pub const MAX_PODS: usize = 1000;
/// Most bytes of the UID of a pod in a record.
const MAX_UID: usize = 128;

/// Key of the annotation.
pub const RECORD: &str = "surge.coordination.k8s.io/record";

/// A surge that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurgeRecord {
    /// What was added to the number.
    pub delta: i32,
    /// The number as it was written, with the delta.
    pub number: i32,
    /// UIDs of the pods that are to be evicted, one for each replica that was added.
    pub pods: BTreeSet<String>,
    /// When the surge came to have these pods.
    pub since: Timestamp,
}

/// The annotation's JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireSurgeRecord<'a> {
    delta: i32,
    replicas: i32,
    /// The UID of the object that has the annotation.
    uid: Cow<'a, str>,
    pods: Cow<'a, BTreeSet<String>>,
    since: Timestamp,
}

/// The annotation as it is found on an object.
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
    /// The record of a surge that gives each of these pods a replica beyond `floor`, as of now. `base` is the number without
    /// the surge.
    pub fn new(base: i32, floor: i32, pods: BTreeSet<String>, now: Timestamp) -> Self {
        let number = floor.saturating_add(count(&pods));
        Self { delta: number - base, number, pods, since: now }
    }

    /// How many pods the surge is for.
    pub fn surged(&self) -> i32 {
        count(&self.pods)
    }

    /// The value of the annotation on the object with this UID.
    pub fn annotation(&self, uid: &str) -> String {
        let Self { delta, number: replicas, ref pods, since } = *self;
        let wire =
            WireSurgeRecord { delta, replicas, uid: Cow::Borrowed(uid), pods: Cow::Borrowed(pods), since };
        serde_json::to_string(&wire).unwrap_or_default()
    }

    /// What is to be taken back from the number as it is now: the delta, but never so much that it is lower than before the
    /// surge. Who has set a lower number since has taken the surge back already.
    pub fn to_take_back(&self, number: i32) -> i32 {
        let base = self.number - self.delta;
        number.saturating_sub(base).clamp(0, self.delta)
    }

    fn contradiction(&self) -> Option<&'static str> {
        if self.pods.len() > MAX_PODS || self.pods.iter().any(|pod| pod.len() > MAX_UID) {
            return Some("pods are more, or have longer UIDs, than a surge can have");
        }
        if self.pods.is_empty() || self.delta < self.surged() {
            return Some("delta is not that of its pods");
        }
        (self.number <= self.delta).then_some("replicas is not above delta")
    }
}

/// Most characters of why an annotation cannot be read. The error may repeat the annotation, and each turn of the Deployment
/// is declined with it.
const MAX_WHY: usize = 200;

fn count(pods: &BTreeSet<String>) -> i32 {
    i32::try_from(pods.len()).unwrap_or(i32::MAX)
}

impl FoundRecord {
    /// Reads the annotation of the object with this UID.
    pub fn read(annotation: Option<&str>, uid: &str) -> Self {
        let Some(text) = annotation else { return Self::Absent };
        let wire = match serde_json::from_str::<WireSurgeRecord<'_>>(text) {
            Ok(wire) => wire,
            Err(error) => return Self::Broken(cut(&error.to_string(), MAX_WHY)),
        };
        if wire.uid != uid {
            return Self::Broken("uid is that of another object".to_owned());
        }
        let WireSurgeRecord { delta, replicas: number, pods, since, .. } = wire;
        let record = SurgeRecord { delta, number, pods: pods.into_owned(), since };
        match record.contradiction() {
            None => Self::Valid(record),
            Some(why) => Self::Broken(why.to_owned()),
        }
    }

    /// The record as one of `spec.replicas`, to which one is added for each pod and nothing else.
    #[must_use]
    pub fn of_replicas(self) -> Self {
        match self {
            Self::Valid(record) if record.delta != record.surged() => {
                Self::Broken("delta is not the number of pods".to_owned())
            }
            found => found,
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
        SurgeRecord::new(
            base,
            base,
            pods.iter().map(|pod| (*pod).to_owned()).collect(),
            Timestamp::UNIX_EPOCH,
        )
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let written = record(3, &["a", "b"]);
        assert_eq!((written.delta, written.number), (2, 5));
        assert_eq!(FoundRecord::read(Some(&written.annotation("o")), "o"), FoundRecord::Valid(written));
        assert_eq!(FoundRecord::read(None, "o"), FoundRecord::Absent);
    }

    /// A copy of a Deployment, as a restored backup is one, lost replicas that no surge had added to it.
    #[test]
    fn a_record_that_was_copied_from_another_object_takes_nothing_back() {
        let copied = record(3, &["a"]).annotation("original");
        for uid in ["copy", ""] {
            let found = FoundRecord::read(Some(&copied), uid);
            assert_eq!(found, FoundRecord::Broken("uid is that of another object".into()), "{uid}");
        }
    }

    #[test]
    fn a_record_that_contradicts_itself_is_broken() {
        for text in [
            "",
            "null",
            "2",
            r#"{"delta":1}"#,
            r#"{"delta":0,"replicas":1,"pods":[],"since":"2026-01-01T00:00:00Z","uid":"o"}"#,
            r#"{"delta":1,"replicas":3,"pods":["a","b"],"since":"2026-01-01T00:00:00Z","uid":"o"}"#,
            r#"{"delta":2,"replicas":3,"pods":["a","a"],"since":"2026-01-01T00:00:00Z","uid":"o"}"#,
            r#"{"delta":2,"replicas":3,"pods":["a"],"since":"2026-01-01T00:00:00Z","uid":"o"}"#,
            r#"{"delta":-1,"replicas":3,"pods":["a"],"since":"2026-01-01T00:00:00Z","uid":"o"}"#,
            r#"{"delta":1,"replicas":1,"pods":["a"],"since":"2026-01-01T00:00:00Z","uid":"o"}"#,
            r#"{"delta":1,"replicas":2,"pods":["a"],"since":"yesterday","uid":"o"}"#,
            r#"{"delta":1,"replicas":2,"pods":["a"],"since":"2026-01-01T00:00:00Z","uid":"o","more":1}"#,
            r#"{"delta":1,"replicas":2,"pods":["a"],"since":"2026-01-01T00:00:00Z"}"#,
            r#"{"delta":1.5,"replicas":3,"pods":["a"],"since":"2026-01-01T00:00:00Z","uid":"o"}"#,
            r#"{"delta":NaN,"replicas":3,"pods":["a"],"since":"2026-01-01T00:00:00Z","uid":"o"}"#,
            r#"{"delta":4294967297,"replicas":3,"pods":["a"],"since":"2026-01-01T00:00:00Z","uid":"o"}"#,
            r#"{"delta":1,"replicas":-2147483648,"pods":["a"],"since":"2026-01-01T00:00:00Z","uid":"o"}"#,
            "{\"delta\":1,\"replicas\":2,\"pods\":[\"a\"]}\nshop|victim||2|{\"delta\":2,\"replicas\":2}",
        ] {
            let found = FoundRecord::read(Some(text), "o").of_replicas();
            assert!(matches!(found, FoundRecord::Broken(_)), "{text}");
        }
    }

    /// An annotation with 50,000 short names took 3 MiB in the cache.
    #[test]
    fn a_record_of_more_pods_than_a_surge_can_have_is_broken() {
        let of = |pods: usize| {
            let pods = (0..pods).map(|at| at.to_string()).collect();
            let record = SurgeRecord::new(3, 3, pods, Timestamp::UNIX_EPOCH);
            FoundRecord::read(Some(&record.annotation("o")), "o")
        };
        assert!(matches!(of(MAX_PODS), FoundRecord::Valid(_)));
        assert!(matches!(of(MAX_PODS + 1), FoundRecord::Broken(_)));
        let long = record(3, &[&"u".repeat(200)]).annotation("o");
        assert!(matches!(FoundRecord::read(Some(&long), "o"), FoundRecord::Broken(_)));
    }

    /// Each turn had a copy of an annotation of 250 KB, which together filled the memory.
    #[test]
    fn why_a_record_is_broken_is_short_however_long_the_annotation_is() {
        let long = "a".repeat(250_000);
        for text in [format!(r#"{{"{long}":1}}"#), format!(r#"{{"delta":"{long}"}}"#)] {
            let found = FoundRecord::read(Some(&text), "o");
            assert!(
                matches!(&found, FoundRecord::Broken(why) if why.chars().count() <= MAX_WHY),
                "{text:.20}"
            );
        }
    }

    /// minReplicas is far below the replicas that the load asks for: the delta spans the difference too.
    #[test]
    fn the_delta_of_an_autoscaler_may_be_more_than_its_pods() {
        let written = SurgeRecord::new(2, 5, ["a".to_owned()].into(), Timestamp::UNIX_EPOCH);
        assert_eq!((written.delta, written.number, written.surged()), (4, 6, 1));
        let found = FoundRecord::read(Some(&written.annotation("o")), "o");
        assert_eq!(found, FoundRecord::Valid(written));
        assert!(matches!(found.of_replicas(), FoundRecord::Broken(_)));
    }

    #[test]
    fn a_surge_is_taken_back_as_a_delta_and_never_below_what_was_there_before() {
        let surge = record(3, &["a", "b"]);
        for (replicas, back) in [(5, 2), (9, 2), (4, 1), (3, 0), (2, 0), (0, 0)] {
            assert_eq!(surge.to_take_back(replicas), back, "of {replicas}");
        }
    }
}
