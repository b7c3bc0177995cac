//! Watchers are woken only by changes that may concern them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Context;

use drydock_machinery::Object;
use drydock_machinery::field_mask::FieldMask;
use futures::FutureExt;
use futures::task::{ArcWake, waker};

use super::{Setup, setup, small};
use crate::backend::{Backend, Revision};
use crate::cache::Config;
use crate::storage::{NextState, RequiredField, Scope, Selection, WatchFrom};
use crate::testing::storage_suite::{Follower, even, object};

/// Counts how often a task was woken.
#[derive(Default)]
struct Alarms(AtomicUsize);

impl ArcWake for Alarms {
    fn wake_by_ref(arc: &Arc<Self>) {
        arc.0.fetch_add(1, SeqCst);
    }
}

pub async fn a_watcher_sleeps_through_what_does_not_concern_it(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    setup.fixture.create("a/1", 0).await;
    for (scope, other) in [(Scope::object("a/1"), "a/2"), (Scope::namespace("a"), "b/1")] {
        let start = setup.fixture.set("a/1", 1).await;
        setup.seen(start).await;
        let mut watcher = setup.fixture.storage.watch(scope, WatchFrom::After(start)).await.unwrap();
        let alarms = Arc::<Alarms>::default();
        let waker = waker(alarms.clone());
        while watcher.next().now_or_never().is_some() {}
        let mut next = Box::pin(watcher.next());
        assert!(next.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
        setup.fixture.create(other, 0).await;
        setup.seen(setup.fixture.set(other, 1).await).await;
        assert_eq!(alarms.0.load(SeqCst), 0, "{other} woke it");
        setup.seen(setup.fixture.set("a/1", 2).await).await;
        assert!(alarms.0.load(SeqCst) > 0, "it sleeps on");
    }
}

pub async fn a_watcher_that_slept_through_more_than_the_ring_goes_on(backend: Arc<dyn Backend>) {
    let setup = setup(backend, Config { ring_events: 10, ..small() }).await;
    let start = setup.fixture.create("a/1", 0).await;
    let mut asleep = setup.fixture.follow(Scope::namespace("a"), WatchFrom::After(start)).await;
    asleep.until_progress(&setup.fixture.backend, start).await;
    setup.fixture.create("b/1", 0).await;
    let mut last = start;
    for value in 1..50 {
        last = setup.fixture.set("b/1", value).await;
    }
    setup.seen(last).await;
    assert!(asleep.progress() >= last, "a bookmark would be of {:?}", asleep.progress());
    setup.fixture.set("a/1", 1).await;
    assert_eq!(asleep.next_as_text().await.0, "~a/1=1");
    assert_eq!(setup.metric(|metrics| &metrics.expired_watchers), 0);
}

pub async fn a_watcher_that_was_woken_and_does_not_read_is_expired(backend: Arc<dyn Backend>) {
    let setup = setup(backend, Config { ring_events: 10, ..small() }).await;
    let start = setup.fixture.create("a/1", 0).await;
    let mut asleep = setup.fixture.follow(Scope::namespace("a"), WatchFrom::After(start)).await;
    asleep.until_progress(&setup.fixture.backend, start).await;
    let missed = setup.fixture.set("a/1", 1).await;
    setup.fixture.create("b/1", 0).await;
    let mut last = missed;
    for value in 1..50 {
        last = setup.fixture.set("b/1", value).await;
    }
    setup.seen(last).await;
    assert!(asleep.progress() < missed, "it was not told of {missed:?}");
    asleep.failure().await;
}

/// Returns the same scope with and without an index; `parity` is a label.
fn of_parity(parity: &'static str) -> [Scope; 2] {
    let requires = RequiredField {
        path: ["metadata", "labels", "parity"].map(str::to_owned).into(),
        value: parity.to_owned(),
    };
    let accepts = move |object: &Object| label(object) == parity;
    [Some(requires), None].map(|requires| Scope {
        matches: Some(Selection {
            reads: Arc::new(FieldMask::of(["metadata.labels"])),
            requires,
            bytes: 0,
            accepts: Arc::new(accepts),
        }),
        ..Scope::all()
    })
}

fn label(object: &Object) -> &str {
    object.labels().and_then(|labels| labels["parity"].as_str()).unwrap_or_default()
}

fn labelled(key: &str, value: u64) -> Object {
    let mut labelled = object(key, value);
    let parity = if even(&labelled) { "even" } else { "odd" };
    labelled.meta_mut().insert("labels".into(), serde_json::json!({"parity": parity}));
    labelled
}

async fn put(setup: &Setup, key: &str, value: u64) -> Revision {
    match setup.fixture.replace(key, |_| NextState::Write(labelled(key, value))).await {
        Some(stored) => stored.revision,
        None => {
            let created = setup.fixture.storage.create(key, labelled(key, value), Default::default());
            created.await.unwrap().revision
        }
    }
}

/// Some watchers read after each write, some after many: they receive the same events as without an index.
pub async fn an_index_changes_nothing_of_what_is_told(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    let start = put(&setup, "a/0", 0).await;
    let keyed = |key: &'static str| {
        let same =
            Scope::all().matching(&["metadata"], move |o| format!("{}/{}", o.namespace(), o.name()) == key);
        [Scope::object(key), same]
    };
    let spaced = |name: &'static str| {
        [Scope::namespace(name), Scope::all().matching(&["metadata"], move |o| o.namespace() == name)]
    };
    let pairs = [of_parity("even"), of_parity("odd"), keyed("a/1"), keyed("b/2"), spaced("a"), spaced("b")];
    let mut followers: Vec<[Follower; 2]> = Vec::new();
    for [indexed, plain] in pairs {
        let indexed = setup.fixture.follow(indexed, WatchFrom::After(start)).await;
        followers.push([indexed, setup.fixture.follow(plain, WatchFrom::After(start)).await]);
    }
    let mut dice = 1_u64;
    for step in 0..600_u64 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = format!("{}/{}", ["a", "b"][(dice >> 33) as usize % 2], (dice >> 40) % 3);
        let last = match (dice >> 50) % 5 {
            0 if setup.fixture.storage.get(&key, crate::storage::ReadAt::Latest).await.is_ok() => {
                setup.fixture.delete(&key).await
            }
            _ => put(&setup, &key, step).await,
        };
        for (number, [indexed, plain]) in (1..).zip(&mut followers) {
            if step % number == 0 {
                let told = plain.all_until(&setup, last).await;
                assert_eq!(indexed.all_until(&setup, last).await, told, "scope {number}, step {step}");
            }
        }
    }
}

impl Follower {
    /// Returns all events up to a revision.
    async fn all_until(&mut self, setup: &Setup, revision: Revision) -> Vec<(String, Revision)> {
        setup.seen(revision).await;
        let mut told = Vec::new();
        while let Some(event) = self.next_as_text().now_or_never() {
            told.push(event);
        }
        told
    }
}
