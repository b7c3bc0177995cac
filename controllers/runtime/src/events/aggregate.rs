//! Which events are written: equal ones become one with a count, and an object that makes many is slowed down (the
//! numbers are those of client-go's event correlator).

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{Note, Regarding, Severity};

/// Equal events further apart than this are separate ones.
const SAME_WITHIN: Duration = Duration::from_secs(600);
/// Events of one object that are written at once.
const BURST: f64 = 25.0;
/// Then one in this many seconds.
const SECONDS_PER_EVENT: f64 = 300.0;
/// Entries that are remembered; the oldest go first.
const REMEMBERED: usize = 4096;

/// What to do with an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// Write a new event.
    Create,
    /// Raise the count of the event with this name.
    Count { name: String, count: i32 },
    /// Nothing: the object makes too many.
    Drop,
}

#[derive(PartialEq, Eq, Hash, Clone)]
struct Kind {
    regarding: (String, String, String),
    severity: Severity,
    reason: &'static str,
    message: String,
}

struct Known {
    name: String,
    count: i32,
    last: Timestamp,
}

struct Bucket {
    tokens: f64,
    last: Timestamp,
}

#[derive(Default)]
pub(super) struct Aggregator {
    known: HashMap<Kind, Known>,
    buckets: HashMap<String, Bucket>,
}

impl Aggregator {
    pub(super) fn take(&mut self, note: &Note) -> Action {
        if !self.spend(&note.regarding, note.time) {
            return Action::Drop;
        }
        let Some(known) = self.known.get_mut(&kind_of(note)) else { return Action::Create };
        if seconds_between(known.last, note.time) > SAME_WITHIN.as_secs_f64() {
            return Action::Create;
        }
        known.count = known.count.saturating_add(1);
        known.last = note.time;
        Action::Count { name: known.name.clone(), count: known.count }
    }

    /// Remembers an event that was written.
    pub(super) fn created(&mut self, note: &Note, name: String) {
        forget_oldest(&mut self.known, |known| known.last);
        self.known.insert(kind_of(note), Known { name, count: 1, last: note.time });
    }

    /// Forgets an event that is no longer there.
    pub(super) fn gone(&mut self, note: &Note) {
        self.known.remove(&kind_of(note));
    }

    fn spend(&mut self, regarding: &Regarding, now: Timestamp) -> bool {
        forget_oldest(&mut self.buckets, |bucket| bucket.last);
        let bucket =
            self.buckets.entry(regarding.uid.clone()).or_insert_with(|| Bucket { tokens: BURST, last: now });
        let refill = seconds_between(bucket.last, now) / SECONDS_PER_EVENT;
        bucket.tokens = (bucket.tokens + refill).min(BURST);
        bucket.last = now;
        let enough = bucket.tokens >= 1.0;
        if enough {
            bucket.tokens -= 1.0;
        }
        enough
    }
}

fn kind_of(note: &Note) -> Kind {
    let Regarding { kind, uid, name, .. } = &note.regarding;
    Kind {
        regarding: ((*kind).to_owned(), name.clone(), uid.clone()),
        severity: note.severity,
        reason: note.reason,
        message: note.message.clone(),
    }
}

fn forget_oldest<K, V>(map: &mut HashMap<K, V>, last: impl Fn(&V) -> Timestamp) {
    if map.len() < REMEMBERED {
        return;
    }
    let mut times: Vec<Timestamp> = map.values().map(&last).collect();
    times.sort_unstable();
    let median = times[times.len() / 2];
    map.retain(|_, value| last(value) > median);
}

fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn note(message: &str, second: i64) -> Note {
        let regarding = Regarding {
            api_version: "v1".into(),
            kind: "Pod",
            namespace: "ns".into(),
            name: "p".into(),
            uid: "u".into(),
            resource_version: "1".into(),
        };
        let time = Timestamp::from_second(second).unwrap();
        Note { regarding, severity: Severity::Normal, reason: "R", message: message.into(), time }
    }

    #[test]
    fn equal_events_are_counted() {
        let mut events = Aggregator::default();
        assert_eq!(events.take(&note("m", 0)), Action::Create);
        events.created(&note("m", 0), "e1".into());
        assert_eq!(events.take(&note("m", 5)), Action::Count { name: "e1".into(), count: 2 });
        assert_eq!(events.take(&note("other", 5)), Action::Create);
        assert_eq!(events.take(&note("m", 1000)), Action::Create);
    }

    #[test]
    fn object_that_makes_many_is_slowed_down() {
        let mut events = Aggregator::default();
        let written = |events: &mut Aggregator, from: i64, n: i64| {
            (0..n).filter(|i| events.take(&note(&format!("{from} {i}"), from)) != Action::Drop).count()
        };
        assert_eq!(written(&mut events, 0, 100), 25);
        assert_eq!(written(&mut events, 300, 10), 1);
    }

    #[test]
    fn memory_is_bounded() {
        let mut events = Aggregator::default();
        for i in 0..20_000 {
            let mut note = note("m", i);
            note.regarding.uid = i.to_string();
            events.take(&note);
            events.created(&note, "e".into());
        }
        assert!(events.known.len() <= REMEMBERED && events.buckets.len() <= REMEMBERED);
    }
}
