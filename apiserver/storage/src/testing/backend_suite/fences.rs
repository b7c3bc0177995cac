//! Writes that depend on another key, and writers whose fencing terms end.

use super::harness::*;
use crate::backend::{CompareAndSwap, Guard, WriteOutcome};
use crate::fence::{FenceError, Fences};

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
    let old = one.enter("leader", 5).await.unwrap();
    assert_eq!(other.enter("leader", 5).await.unwrap(), old);
    let new = other.enter("leader", 6).await.unwrap();
    // This replica still remembers the old term; its write is refused all the same.
    let late = one.enter("leader", 5).await.unwrap();
    assert!(matches!(guarded(&store, "/a", &late).await, WriteOutcome::GuardFailed));
    one.forget("leader");
    let refused = one.enter("leader", 5).await.unwrap_err();
    assert!(matches!(refused, FenceError::Over { term: 5, newest: 6 }), "{refused:?}");
    assert_eq!(one.enter("leader", 6).await.unwrap(), new);
    committed(guarded(&store, "/a", &new).await);
}

pub async fn writers_have_terms_of_their_own(store: Store) {
    let fences = Fences::new(store.clone());
    fences.enter("leader", u64::MAX).await.unwrap();
    let guard = fences.enter("another", 1).await.unwrap();
    committed(guarded(&store, "/a", &guard).await);
}

pub async fn of_terms_that_begin_at_once_the_newest_stays(store: Store) {
    let begin = |term| {
        let fences = Fences::new(store.clone());
        async move { (term, fences.enter("leader", term).await) }
    };
    let ends = futures::future::join_all((1..=8).map(begin)).await;
    for (term, end) in ends {
        let Ok(guard) = end else { continue };
        let outcome = guarded(&store, &format!("/{term}"), &guard).await;
        assert_eq!(matches!(outcome, WriteOutcome::Committed(_)), term == 8, "{term}: {outcome:?}");
    }
}
