//! What really happened: the log of all writes, put together from every piece of evidence there is.
//!
//! An acknowledgement, an event and a read each prove that a key had a value at a revision. Where two of them disagree
//! there is no model, and that is a fault of its own.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::FoundFaults;
use crate::record::{
    DeliveredItem, DeliveredKind, History, Pair, RecordedOperation, RecordedOutcome, RecordedWatch, Rev,
    Value, WatchStart,
};

/// One write that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEntry {
    pub key: String,
    /// None for a deletion.
    pub value: Option<Value>,
}

/// A version of a key: since when, and when the key was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub value: Value,
    pub modified: Rev,
    pub created: Rev,
}

/// All writes that happened.
#[derive(Default)]
pub struct WriteModel {
    pub log: BTreeMap<Rev, ModelEntry>,
    pub written_at: HashMap<Value, Rev>,
    versions: BTreeMap<String, BTreeMap<Rev, Option<Version>>>,
}

impl WriteModel {
    /// Puts the log together.
    pub fn of(history: &History, faults: &mut FoundFaults) -> Self {
        let mut model = Self::default();
        for op in &history.ops {
            match &op.what {
                RecordedOperation::Write(write) => {
                    if let RecordedOutcome::Committed(at) = write.outcome {
                        model.note(at, &write.key, write.value, op.by, faults);
                    }
                }
                RecordedOperation::Get { found, .. } | RecordedOperation::NotOlder { found, .. } => {
                    model.pairs(found.as_slice(), op.by, faults);
                }
                RecordedOperation::Range { found, .. } => model.pairs(found, op.by, faults),
                RecordedOperation::Expired { .. } => {}
            }
        }
        for stream in &history.streams {
            model.events(stream, faults);
        }
        model.index();
        model
    }

    /// The version of a key at a revision.
    pub fn at(&self, key: &str, revision: Rev) -> Option<Version> {
        *self.versions.get(key)?.range(..=revision).next_back()?.1
    }

    /// All keys of a range at a revision.
    pub fn state(&self, keys: &Range<String>, revision: Rev) -> Vec<(&str, Version)> {
        let within = self.versions.range(keys.clone());
        within.filter_map(|(key, _)| Some((key.as_str(), self.at(key, revision)?))).collect()
    }

    /// Every version that a key had from a revision on, the one at that revision first.
    pub fn since(&self, key: &str, revision: Rev) -> Vec<Option<Version>> {
        let later = self.versions.get(key).into_iter().flat_map(|all| all.range(revision + 1..));
        [self.at(key, revision)].into_iter().chain(later.map(|(_, version)| *version)).collect()
    }

    /// The newest revision.
    pub fn newest(&self) -> Rev {
        self.log.keys().next_back().copied().unwrap_or_default()
    }

    fn pairs(&mut self, pairs: &[Pair], by: &str, faults: &mut FoundFaults) {
        for pair in pairs {
            self.note(pair.modified, &pair.key, Some(pair.value), by, faults);
        }
    }

    fn events(&mut self, stream: &RecordedWatch, faults: &mut FoundFaults) {
        for (_, item) in &stream.items {
            match item {
                DeliveredItem::Present(pair) => self.pairs(std::slice::from_ref(pair), stream.by, faults),
                DeliveredItem::Event(event) => {
                    self.pairs(event.previous.as_slice(), stream.by, faults);
                    match event.kind {
                        // Leaving a selection looks the same.
                        DeliveredKind::Deleted if stream.even => {}
                        DeliveredKind::Deleted => {
                            self.note(event.revision, &event.key, None, stream.by, faults)
                        }
                        _ => self.note(event.revision, &event.key, event.value, stream.by, faults),
                    }
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, at: Rev, key: &str, value: Option<Value>, by: &str, faults: &mut FoundFaults) {
        let entry = ModelEntry { key: key.to_owned(), value };
        let known = self.log.entry(at).or_insert_with(|| entry.clone());
        if *known != entry {
            faults.add(format!("{by}: revision {at} is {entry:?}, and to others {known:?}"));
        }
        let Some(value) = value else { return };
        let first = *self.written_at.entry(value).or_insert(at);
        if first != at {
            faults.add(format!("{by}: value {value} of {key} was written at {first} and again at {at}"));
        }
    }

    fn index(&mut self) {
        for (at, entry) in &self.log {
            let versions = self.versions.entry(entry.key.clone()).or_default();
            let before = versions.values().next_back().copied().flatten();
            let created = before.map_or(*at, |version| version.created);
            let version = entry.value.map(|value| Version { value, modified: *at, created });
            versions.insert(*at, version);
        }
    }
}

impl RecordedWatch {
    /// The revision that its first change is above.
    pub fn base(&self) -> Option<Rev> {
        match self.from {
            WatchStart::After(after) => Some(after),
            WatchStart::Initial(_) => self.items.iter().find_map(|(_, item)| match item {
                DeliveredItem::InitialEnd(at) => Some(*at),
                _ => None,
            }),
        }
    }
}
