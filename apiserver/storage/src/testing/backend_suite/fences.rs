//! Writes that depend on another key, and writers whose fencing terms end.

use drydock_machinery::RefusedToken;

use super::harness::*;
use crate::backend::{CompareAndSwap, Guard, WriteOutcome};
use crate::fence::{self, FenceError, Fences, StoredTerm};

/// The server's clock, in microseconds since 1970.
const NOW: u64 = 1_800_000_000_000_000;
const HOUR: u64 = 3_600_000_000;
const YEAR: u64 = 365 * 24 * HOUR;

async fn guarded(store: &Store, key: &str, guard: &Guard) -> WriteOutcome {
    let write = CompareAndSwap {
        key: key.to_owned(),
        expected: None,
        value: value("1"),
        guard: Some(guard.clone()),
        priority: Default::default(),
    };
    store.write(write).await.expect("a write is answered")
}

pub async fn a_write_is_made_only_while_its_guard_stands(store: Store) {
    let first = create(&store, "/guard", "1").await;
    let guard = Guard { key: "/guard".to_owned(), revision: first };
    committed(guarded(&store, "/a", &guard).await);
    // The guard holds and the write itself fails: that is another outcome.
    assert!(matches!(guarded(&store, "/a", &guard).await, WriteOutcome::Conflict(Some(_), _)));
    let moved = update(&store, "/guard", first, "2").await;
    assert!(matches!(guarded(&store, "/b", &guard).await, WriteOutcome::GuardFailed));
    assert_eq!((text(&store, "/b", None).await, store.current_revision().await.unwrap()), (None, moved));
    delete(&store, "/guard", moved).await;
    assert!(matches!(guarded(&store, "/b", &guard).await, WriteOutcome::GuardFailed));
}

pub async fn a_newer_term_ends_the_older_one_on_every_replica(store: Store) {
    let (one, other) = (Fences::new(store.clone()), Fences::new(store.clone()));
    let old = one.enter("leader", 5, NOW).await.unwrap();
    assert_eq!(other.enter("leader", 5, NOW).await.unwrap(), old);
    let new = other.enter("leader", 6, NOW).await.unwrap();
    // This replica still remembers the old term; its write is refused all the same.
    let late = one.enter("leader", 5, NOW).await.unwrap();
    assert!(matches!(guarded(&store, "/a", &late).await, WriteOutcome::GuardFailed));
    one.forget("leader");
    let refused = one.enter("leader", 5, NOW).await.unwrap_err();
    assert!(matches!(refused, FenceError::Refused(RefusedToken { term: 5, newest: 6, .. })), "{refused:?}");
    assert_eq!(one.enter("leader", 6, NOW).await.unwrap(), new);
    committed(guarded(&store, "/a", &new).await);
}

pub async fn writers_have_terms_of_their_own(store: Store) {
    let fences = Fences::new(store.clone());
    fences.enter("leader", u64::MAX, u64::MAX).await.unwrap();
    let guard = fences.enter("another", 1, NOW).await.unwrap();
    committed(guarded(&store, "/a", &guard).await);
}

pub async fn of_terms_that_begin_at_once_the_newest_stays(store: Store) {
    let begin = |term| {
        let fences = Fences::new(store.clone());
        async move { (term, fences.enter("leader", term, NOW).await) }
    };
    let ends = futures::future::join_all((1..=8).map(begin)).await;
    for (term, end) in ends {
        let Ok(guard) = end else { continue };
        let outcome = guarded(&store, &format!("/{term}"), &guard).await;
        assert_eq!(matches!(outcome, WriteOutcome::Committed(_)), term == 8, "{term}: {outcome:?}");
    }
}

/// The terms of all writers, as the store has them.
async fn stored(store: &Store) -> Vec<StoredTerm> {
    fence::terms(store.range(fence::keys(), 0, None).await.unwrap().items).unwrap()
}

/// Enters a term that is refused, and returns what else may begin.
async fn refused(fences: &Fences, term: u64) -> RefusedToken {
    match fences.enter("leader", term, NOW).await {
        Err(FenceError::Refused(refused)) => refused,
        other => panic!("{term}: {other:?}"),
    }
}

/// Regression: the clock of one leader was ten years ahead, once, and its term made all later ones outdated.
pub async fn a_term_begins_at_most_a_day_ahead_or_directly_above_the_newest(store: Store) {
    let (fences, other) = (Fences::new(store.clone()), Fences::new(store.clone()));
    let highest = NOW + 24 * HOUR;
    let term = NOW + 10 * YEAR;
    assert_eq!(refused(&fences, term).await, RefusedToken { term, newest: 0, highest });
    assert_eq!(stored(&store).await, []);
    fences.enter("leader", highest, NOW).await.unwrap();
    // Above a term that is as far ahead as any may be: each is a little above the one before.
    let above = highest + 1_000_000;
    let too_high = RefusedToken { term: above + 1, newest: highest, highest: above };
    assert_eq!(refused(&fences, above + 1).await, too_high);
    // What another replica has admitted counts, though this one remembers another term.
    other.enter("leader", above, NOW).await.unwrap();
    fences.enter("leader", above + 1, NOW).await.unwrap();

    // The term of a store of before this rule, with a clock that is right.
    fences.enter("leader", term, term).await.unwrap();
    assert_eq!(
        refused(&fences, NOW).await,
        RefusedToken { term: NOW, newest: term, highest: term + 1_000_000 }
    );
    let guard = fences.enter("leader", term + 1, NOW).await.unwrap();
    committed(guarded(&store, "/a", &guard).await);
}

pub async fn a_writer_whose_term_is_reset_begins_with_any_on_every_replica(store: Store) {
    let (fences, command) = (Fences::new(store.clone()), Fences::new(store.clone()));
    // Nothing is above it.
    let old = fences.enter("leader", u64::MAX, u64::MAX).await.unwrap();
    fences.enter("another", 7, NOW).await.unwrap();
    assert_eq!(refused(&fences, NOW).await.newest, u64::MAX);
    assert_eq!(command.reset("leader").await.unwrap(), Some(u64::MAX));
    assert_eq!(command.reset("leader").await.unwrap(), None);
    assert_eq!(stored(&store).await, [StoredTerm { writer: "another".to_owned(), term: 7 }]);
    // The server remembers the old term; what was admitted in it is refused.
    assert!(matches!(guarded(&store, "/a", &old).await, WriteOutcome::GuardFailed));
    let new = fences.enter("leader", NOW, NOW).await.unwrap();
    committed(guarded(&store, "/a", &new).await);
}
