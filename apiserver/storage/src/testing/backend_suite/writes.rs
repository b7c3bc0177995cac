//! Compare-and-swap.

use bytes::Bytes;

use super::harness::*;
use crate::backend::{BackendError, CompareAndSwap, Revision, WriteOutcome};

pub async fn every_write_gets_the_next_revision(store: Store) {
    let first = create(&store, "/a", "1").await;
    let second = create(&store, "/b", "1").await;
    let third = update(&store, "/a", first, "2").await;
    let fourth = delete(&store, "/b", second).await;
    assert_eq!([second.0, third.0, fourth.0], [first.0 + 1, first.0 + 2, first.0 + 3]);
    assert_eq!(store.current_revision().await.unwrap(), fourth);
}

pub async fn an_empty_store_has_a_valid_revision(store: Store) {
    assert!(store.current_revision().await.unwrap() > Revision(0));
    assert_eq!(text(&store, "/a", None).await, None);
}

pub async fn a_write_is_read_back_whole(store: Store) {
    let bytes = Bytes::from((0..=255).collect::<Vec<u8>>());
    let revision = committed(cas(&store, "/a/ü", None, Some(bytes.clone())).await);
    let (pair, at) = store.get("/a/ü", None).await.unwrap();
    let pair = pair.unwrap();
    assert_eq!((pair.key.as_str(), &pair.value), ("/a/ü", &bytes));
    assert_eq!((pair.create_revision, pair.mod_revision, at), (revision, revision, revision));
}

pub async fn an_empty_value_is_not_a_delete(store: Store) {
    create(&store, "/a", "").await;
    assert_eq!(text(&store, "/a", None).await.as_deref(), Some(""));
}

pub async fn create_conflicts_with_what_exists(store: Store) {
    let first = create(&store, "/a", "1").await;
    let other = create(&store, "/b", "1").await;
    match cas(&store, "/a", None, value("2")).await {
        WriteOutcome::Conflict(Some(present), at) => {
            assert_eq!((present.value.as_ref(), present.mod_revision), (&b"1"[..], first));
            assert_eq!(at, other);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(store.current_revision().await.unwrap(), other, "a conflict takes no revision");
}

pub async fn update_conflicts_with_a_newer_write(store: Store) {
    let first = create(&store, "/a", "1").await;
    let second = update(&store, "/a", first, "2").await;
    match cas(&store, "/a", Some(first), value("3")).await {
        WriteOutcome::Conflict(Some(present), _) => {
            assert_eq!((present.create_revision, present.mod_revision), (first, second));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(text(&store, "/a", None).await.as_deref(), Some("2"));
}

pub async fn update_conflicts_with_nothing(store: Store) {
    let outcome = cas(&store, "/a", Some(Revision(1)), value("1")).await;
    assert!(matches!(outcome, WriteOutcome::Conflict(None, _)), "{outcome:?}");
    assert_eq!(text(&store, "/a", None).await, None);
}

pub async fn delete_conflicts_with_a_newer_write(store: Store) {
    let first = create(&store, "/a", "1").await;
    update(&store, "/a", first, "2").await;
    assert!(matches!(cas(&store, "/a", Some(first), None).await, WriteOutcome::Conflict(Some(_), _)));
    assert_eq!(text(&store, "/a", None).await.as_deref(), Some("2"));
}

pub async fn deleting_nothing_takes_no_revision(store: Store) {
    let before = create(&store, "/b", "1").await;
    assert_eq!(committed(cas(&store, "/a", None, None).await), before);
    assert_eq!(store.current_revision().await.unwrap(), before);
}

pub async fn a_key_can_be_created_again_after_its_delete(store: Store) {
    let first = create(&store, "/a", "1").await;
    let gone = delete(&store, "/a", first).await;
    assert!(matches!(cas(&store, "/a", Some(gone), value("2")).await, WriteOutcome::Conflict(None, _)));
    let again = create(&store, "/a", "2").await;
    let (pair, _) = store.get("/a", None).await.unwrap();
    assert_eq!(pair.unwrap().create_revision, again);
}

pub async fn a_value_too_large_is_refused_and_nothing_written(store: Store) {
    let before = store.current_revision().await.unwrap();
    let huge = CompareAndSwap {
        key: "/a".to_owned(),
        expected: None,
        value: Some(vec![b'x'; 8 << 20].into()),
        guard: None,
        priority: Default::default(),
    };
    let error = store.write(huge).await.unwrap_err();
    assert!(matches!(error, BackendError::TooLarge), "{error:?}");
    assert_eq!(store.current_revision().await.unwrap(), before);
    create(&store, "/a", "small").await;
}

pub async fn of_racing_creates_one_wins(store: Store) {
    let race = (0..16).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { cas(&store, "/a", None, value(n.to_string())).await })
    });
    let mut winners = 0;
    for outcome in futures::future::join_all(race).await {
        winners += usize::from(matches!(outcome.unwrap(), WriteOutcome::Committed(_)));
    }
    assert_eq!(winners, 1);
}

pub async fn racing_updates_lose_nothing(store: Store) {
    create(&store, "/n", "0").await;
    let race = (0..8).map(|_| tokio::spawn(add(store.clone(), 20)));
    for done in futures::future::join_all(race).await {
        done.unwrap();
    }
    assert_eq!(text(&store, "/n", None).await.as_deref(), Some("160"));
}

async fn add(store: Store, times: usize) {
    for _ in 0..times {
        loop {
            let (pair, _) = store.get("/n", None).await.unwrap();
            let pair = pair.unwrap();
            let number: u64 = std::str::from_utf8(&pair.value).unwrap().parse().unwrap();
            let outcome = cas(&store, "/n", Some(pair.mod_revision), value((number + 1).to_string())).await;
            if matches!(outcome, WriteOutcome::Committed(_)) {
                break;
            }
        }
    }
}
