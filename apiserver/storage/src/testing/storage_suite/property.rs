//! A watcher that starts with initial events and applies all later events ends with what a list returns.

use std::collections::BTreeMap;
use std::sync::Arc;

use drydock_machinery::Object;

use super::harness::{Fixture, even, object, read_value, set_value};
use crate::backend::Revision;
use crate::storage::{NextState, ReadAt, Scope, StorageError, WatchFrom};

/// A small deterministic random generator (xorshift).
struct Choices(u64);

impl Choices {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

pub async fn a_watcher_that_applies_its_events_has_the_list(fixture: Fixture) {
    let fixture = Arc::new(fixture);
    let writers: Vec<_> =
        (1..=3).map(|seed| tokio::spawn(write(fixture.clone(), Choices(seed * 7919)))).collect();
    let mut watchers = Vec::new();
    for scope in scopes() {
        let from = WatchFrom::InitialEvents(ReadAt::Latest);
        watchers.push((scope.clone(), fixture.follow(scope, from).await));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    // Two last objects, in and out of each selection, mark the end for the watchers.
    let mut last = Revision(0);
    for key in ["a/last", "b/last"] {
        last = fixture.create(key, 2).await;
    }
    for (scope, mut follower) in watchers {
        let page = fixture.list(&scope, ReadAt::Exact(last)).await;
        let listed: BTreeMap<_, _> = page
            .items
            .iter()
            .map(|stored| (stored.key.to_string(), (read_value(&stored.object()), stored.revision)))
            .collect();
        let newest = listed.values().map(|(_, revision)| *revision).max().unwrap();
        follower.until(newest).await;
        assert_eq!(follower.state, listed);
    }
}

fn scopes() -> Vec<Scope> {
    vec![
        Scope::all(),
        Scope::namespace("a"),
        Scope::namespace("b").matching(&["spec.value"], even),
        Scope::all().matching(&["spec.value"], even),
    ]
}

async fn write(fixture: Arc<Fixture>, mut choices: Choices) {
    for _ in 0..150 {
        let namespace = ["a", "b"][choices.below(2) as usize];
        let key = format!("{namespace}/{}", choices.below(8));
        let (value, delete) = (choices.below(100), choices.below(4) == 0);
        let next = |seen: &Object| match delete {
            true => NextState::Delete(seen.clone()),
            false => NextState::Write(set_value(seen, value)),
        };
        if fixture.replace(&key, next).await.is_none() {
            let created = fixture.storage.create(&key, object(&key, value), Default::default()).await;
            // Another writer may have created it first.
            assert!(matches!(created, Ok(_) | Err(StorageError::AlreadyExists)), "{created:?}");
        }
    }
}
