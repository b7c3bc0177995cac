//! Decides which events are written: equal events become one with a count, similar events are combined into
//! one, and events that come too fast wait and are then written as one (the numbers are those of client-go's
//! event correlator).
//!
//! Events are similar when they have the object, type and reason in common: each reason has its own pace, so
//! that thousands of events of one reason do not keep events of another reason from being written.

use std::collections::HashMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use drydock_api::text::cut_bytes;

use super::{RecordedEvent, Severity};

/// Equal or similar events that are further apart than this are written separately.
const SAME_WITHIN: Duration = Duration::from_secs(600);
/// How many similar events within that time have messages of their own; those that follow are combined.
const MAX_SIMILAR_MESSAGES: u32 = 10;
/// How many similar events are written without a delay.
const EVENT_BURST: f64 = 25.0;
/// After these, one similar event is written in this many seconds.
const SECONDS_PER_EVENT: f64 = 300.0;
/// Most entries that a map remembers; a full map forgets its older half.
const MAX_REMEMBERED: usize = 4096;
/// The beginning of a combined event's message, which continues with the message of the last event, as
/// client-go has it.
const COMBINED_PREFIX: &str = "(combined from similar events): ";

/// A write of an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventWrite {
    pub(super) event: RecordedEvent,
    pub(super) how: WriteMode,
    kind: EventSeries,
}

/// How an event is written, with its count after the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WriteMode {
    /// A new event is created.
    Create { count: i32 },
    /// The event with this name is patched.
    Count { name: String, count: i32 },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct EventGroup {
    kind: &'static str,
    name: String,
    uid: String,
    severity: Severity,
    reason: &'static str,
}

/// Events that are written as one: those of a group with this message, or its combined ones if there is no
/// message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct EventSeries {
    group: EventGroup,
    message: Option<String>,
}

struct WrittenEvent {
    name: String,
    count: i32,
    last: Timestamp,
}

struct EventPace {
    tokens: f64,
    last: Timestamp,
    /// How many events have had messages of their own since `since`.
    messages: u32,
    since: Timestamp,
    /// The last of the events that wait, and how many they are.
    held: Option<(RecordedEvent, i32)>,
}

#[derive(Default)]
pub(super) struct Aggregator {
    known: HashMap<EventSeries, WrittenEvent>,
    paces: HashMap<EventGroup, EventPace>,
    dropped: u64,
}

impl Aggregator {
    /// Takes in an event; returns what is to be written now, if anything.
    pub(super) fn take(&mut self, event: RecordedEvent) -> Option<EventWrite> {
        self.make_room();
        let group = group_of(&event);
        let alone = EventSeries { group: group.clone(), message: Some(event.message.clone()) };
        let is_known = self.known.get(&alone).is_some_and(|known| is_same(known.last, event.time));
        let pace = self.paces.entry(group.clone()).or_insert_with(|| EventPace::new(event.time));
        pace.refill(event.time);
        if !is_same(pace.since, event.time) {
            (pace.messages, pace.since) = (0, event.time);
        }
        let is_many = !is_known && pace.messages >= MAX_SIMILAR_MESSAGES;
        if pace.tokens < 1.0 || (is_many && pace.held.is_some()) {
            let times = pace.held.take().map_or(0, |(_, times)| times);
            pace.held = Some((event, times.saturating_add(1)));
            return None;
        }
        pace.tokens -= 1.0;
        if is_many {
            return Some(self.combined(event, 1));
        }
        pace.messages = pace.messages.saturating_add(u32::from(!is_known));
        Some(self.write(alone, event, 1))
    }

    /// Returns an event that has waited long enough, if there is one.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<EventWrite> {
        let waits = |pace: &&mut EventPace| pace.held.is_some();
        let pace = self.paces.values_mut().filter(waits).find(|pace| pace.next() <= now)?;
        pace.refill(now);
        pace.tokens = (pace.tokens - 1.0).max(0.0);
        let (event, times) = pace.held.take()?;
        Some(self.combined(event, times))
    }

    /// When the next of the events that wait is due.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.paces.values().filter(|pace| pace.held.is_some()).map(EventPace::next).min()
    }

    /// Remembers an event that was written.
    pub(super) fn written(&mut self, write: &EventWrite, name: String) {
        let (WriteMode::Create { count } | WriteMode::Count { count, .. }) = write.how;
        self.known.insert(write.kind.clone(), WrittenEvent { name, count, last: write.event.time });
    }

    /// The event that was to be patched no longer exists: returns the write that creates it again.
    pub(super) fn gone(&mut self, write: EventWrite) -> EventWrite {
        self.known.remove(&write.kind);
        EventWrite { how: WriteMode::Create { count: 1 }, ..write }
    }

    /// Returns how many events have been forgotten before they were written, since the last call.
    pub(super) fn dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    fn combined(&self, mut event: RecordedEvent, times: i32) -> EventWrite {
        let kind = EventSeries { group: group_of(&event), message: None };
        event.message.insert_str(0, COMBINED_PREFIX);
        event.message = cut_bytes(&event.message, super::MAX_MESSAGE);
        self.write(kind, event, times)
    }

    fn write(&self, kind: EventSeries, event: RecordedEvent, times: i32) -> EventWrite {
        let known = self.known.get(&kind).filter(|known| is_same(known.last, event.time));
        let how = match known {
            Some(known) => {
                WriteMode::Count { name: known.name.clone(), count: known.count.saturating_add(times) }
            }
            None => WriteMode::Create { count: times },
        };
        EventWrite { event, how, kind }
    }

    fn make_room(&mut self) {
        forget_oldest(&mut self.known, |known| known.last);
        let gone = forget_oldest(&mut self.paces, |pace| pace.last);
        let held = gone.iter().filter_map(|pace| pace.held.as_ref());
        self.dropped += held.map(|(_, times)| u64::try_from(*times).unwrap_or_default()).sum::<u64>();
    }
}

impl EventPace {
    fn new(now: Timestamp) -> Self {
        Self { tokens: EVENT_BURST, last: now, messages: 0, since: now, held: None }
    }

    fn refill(&mut self, now: Timestamp) {
        let refill = seconds_between(self.last, now) / SECONDS_PER_EVENT;
        self.tokens = (self.tokens + refill).min(EVENT_BURST);
        self.last = self.last.max(now);
    }

    /// When there will be a token.
    fn next(&self) -> Timestamp {
        let seconds = (1.0 - self.tokens).max(0.0) * SECONDS_PER_EVENT;
        let wait = SignedDuration::try_from_secs_f64(seconds).unwrap_or(SignedDuration::ZERO);
        self.last.checked_add(wait).unwrap_or(Timestamp::MAX)
    }
}

fn group_of(event: &RecordedEvent) -> EventGroup {
    let regarding = &event.regarding;
    EventGroup {
        kind: regarding.kind,
        name: regarding.name.clone(),
        uid: regarding.uid.clone(),
        severity: event.severity,
        reason: event.reason,
    }
}

/// Removes the older half of a map that is full; returns what was removed.
fn forget_oldest<K, V>(map: &mut HashMap<K, V>, last: impl Fn(&V) -> Timestamp) -> Vec<V> {
    if map.len() < MAX_REMEMBERED {
        return Vec::new();
    }
    let mut times: Vec<Timestamp> = map.values().map(&last).collect();
    times.sort_unstable();
    let median = times[times.len() / 2];
    map.extract_if(|_, value| last(value) <= median).map(|(_, value)| value).collect()
}

fn is_same(last: Timestamp, now: Timestamp) -> bool {
    seconds_between(last, now) <= SAME_WITHIN.as_secs_f64()
}

fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

#[cfg(test)]
#[path = "aggregate_tests.rs"]
mod tests;
