//! Watches: ordered, unique, reliable, resumable, and with correct progress.

use bytes::Bytes;

use super::harness::*;
use crate::backend::{BackendEvent, Revision};

fn as_tuples(events: &[BackendEvent]) -> Vec<(&str, Option<&[u8]>, Revision)> {
    events.iter().map(|event| (event.key.as_str(), event.value.as_deref(), event.revision)).collect()
}

/// Makes every kind of event, and returns their revisions.
async fn history(store: &Store) -> [Revision; 6] {
    let a1 = create(store, "/a", "1").await;
    let b1 = create(store, "/b", "1").await;
    let a2 = update(store, "/a", a1, "2").await;
    let a3 = delete(store, "/a", a2).await;
    let b2 = update(store, "/b", b1, "2").await;
    let a4 = create(store, "/a", "4").await;
    [a1, b1, a2, a3, b2, a4]
}

fn expected(r: [Revision; 6]) -> [(&'static str, Option<&'static [u8]>, Revision); 6] {
    [
        ("/a", Some(b"1"), r[0]),
        ("/b", Some(b"1"), r[1]),
        ("/a", Some(b"2"), r[2]),
        ("/a", None, r[3]),
        ("/b", Some(b"2"), r[4]),
        ("/a", Some(b"4"), r[5]),
    ]
}

pub async fn history_is_told_in_order(store: Store) {
    let start = store.current_revision().await.unwrap();
    let revisions = history(&store).await;
    let events = Watch::start(&store, "/", start).await.events(6).await;
    assert_eq!(as_tuples(&events), expected(revisions));
}

pub async fn what_happens_later_is_told_in_order(store: Store) {
    let start = store.current_revision().await.unwrap();
    let mut watch = Watch::start(&store, "/", start).await;
    let revisions = history(&store).await;
    assert_eq!(as_tuples(&watch.events(6).await), expected(revisions));
}

pub async fn a_watch_resumes_after_any_revision(store: Store) {
    let start = store.current_revision().await.unwrap();
    let revisions = history(&store).await;
    for (seen, after) in [start].into_iter().chain(revisions).enumerate().take(6) {
        let events = Watch::start(&store, "/", after).await.events(6 - seen).await;
        assert_eq!(as_tuples(&events), expected(revisions)[seen..]);
    }
}

pub async fn a_watch_tells_of_its_keys_only(store: Store) {
    let start = store.current_revision().await.unwrap();
    let mut watch = Watch::start(&store, "/a/", start).await;
    create(&store, "/a", "beside").await;
    let first = create(&store, "/a/1", "1").await;
    create(&store, "/a0", "beside").await;
    create(&store, "/b/1", "beside").await;
    let second = create(&store, "/a/2", "2").await;
    let live = watch.events(2).await;
    assert_eq!(as_tuples(&live), [("/a/1", Some(&b"1"[..]), first), ("/a/2", Some(b"2"), second)]);
    let replayed = Watch::start(&store, "/a/", start).await.until_progress(&store, second).await;
    assert_eq!(as_tuples(&replayed), as_tuples(&live));
}

pub async fn events_carry_what_was_before(store: Store) {
    let start = store.current_revision().await.unwrap();
    let mut live = Watch::start(&store, "/", start).await;
    let r = history(&store).await;
    let live = live.events(6).await;
    let replayed = Watch::start(&store, "/", start).await.events(6).await;
    for events in [live, replayed] {
        let before: Vec<_> = events
            .iter()
            .map(|event| {
                event.previous.as_ref().map(|old| (old.value.as_ref(), old.mod_revision, old.create_revision))
            })
            .collect();
        let one = |at: Revision| Some((&b"1"[..], at, at));
        assert_eq!(before, [None, None, one(r[0]), Some((b"2", r[2], r[0])), one(r[1]), None]);
        let created: Vec<_> = events.iter().map(|event| event.create_revision).collect();
        assert_eq!(created, [r[0], r[1], r[0], r[0], r[1], r[5]]);
        assert!(events.iter().all(|event| event.previous.as_ref().is_none_or(|old| old.key == event.key)));
    }
}

/// From etcd's history: a watch from a future revision received older events.
pub async fn a_watch_of_the_future_waits_for_it(store: Store) {
    let now = create(&store, "/a", "old").await;
    let mut watch = Watch::start(&store, "/", Revision(now.0 + 3)).await;
    let mut last = now;
    for n in 0..5 {
        last = update(&store, "/a", last, &n.to_string()).await;
    }
    let events = watch.events(2).await;
    assert_eq!(as_tuples(&events), [("/a", Some(&b"3"[..]), Revision(now.0 + 4)), ("/a", Some(b"4"), last)]);
}

/// From etcd's history (issue 15220): progress was reported ahead of events that were still on their way.
pub async fn progress_comes_after_the_events_up_to_it(store: Store) {
    let start = store.current_revision().await.unwrap();
    let mut watch = Watch::start(&store, "/a/", start).await;
    let mut written = 0;
    for round in 0..20 {
        for n in 0..5 {
            create(&store, &format!("/a/{round}/{n}"), "1").await;
            written += 1;
        }
        let at = create(&store, &format!("/elsewhere/{round}"), "1").await;
        // The harness checks that no later event is at or below a progress.
        let events = watch.until_progress(&store, at).await;
        assert_eq!(events.len(), 5, "all events below {at:?} came before it");
    }
    assert_eq!(written, 100);
}

pub async fn progress_is_told_to_every_watch(store: Store) {
    let start = create(&store, "/elsewhere", "1").await;
    let mut watches = [
        Watch::start(&store, "/a/", start).await,
        Watch::start(&store, "/b/", start).await,
        Watch::start(&store, "/elsewhere", start).await,
    ];
    let at = update(&store, "/elsewhere", start, "2").await;
    for watch in &mut watches {
        watch.until_progress(&store, at).await;
    }
}

/// Regression: etcd reports no progress to a watch whose first revision has not been written. Progress was
/// requested ten times a second forever, and the watch counted as dead.
pub async fn progress_is_told_where_nothing_happens(store: Store) {
    let start = create(&store, "/a", "1").await;
    let mut watch = Watch::start(&store, "/", start).await;
    for _ in 0..2 {
        assert!(watch.until_progress(&store, start).await.is_empty());
    }
    let next = create(&store, "/b", "1").await;
    assert_eq!(watch.event().await.revision, next);
    assert!(watch.until_progress(&store, next).await.is_empty());
}

pub async fn one_store_serves_many_watches_the_same(store: Store) {
    let start = store.current_revision().await.unwrap();
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(Watch::start(&store, "/", start).await);
    }
    let revisions = history(&store).await;
    for watch in &mut watches {
        assert_eq!(as_tuples(&watch.events(6).await), expected(revisions));
    }
}

pub async fn a_watch_of_no_keys_does_not_disturb(store: Store) {
    let watch = store.watch("/b".to_owned().."/a".to_owned(), Revision(1)).await;
    create(&store, "/a", "1").await;
    drop(watch);
    assert_eq!(text(&store, "/a", None).await.as_deref(), Some("1"));
}

pub async fn concurrent_writers_lose_no_event(store: Store) {
    let start = store.current_revision().await.unwrap();
    let mut early = Watch::start(&store, "/w/", start).await;
    let writers = (0..8).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut revisions = Vec::new();
            for n in 0..25 {
                let key = format!("/w/{writer}/{n}");
                let created = create(&store, &key, "1").await;
                revisions.extend([created, delete(&store, &key, created).await]);
            }
            revisions
        })
    });
    let writers: Vec<_> = writers.collect();
    // A watch that starts while they write.
    let mut late = Watch::start(&store, "/w/", start).await;
    let mut written = Vec::new();
    for writer in writers {
        written.extend(writer.await.unwrap());
    }
    written.sort();
    for watch in [&mut early, &mut late] {
        let seen: Vec<_> = watch.events(400).await.iter().map(|event| event.revision).collect();
        assert_eq!(seen, written);
    }
}

/// The events are far more than any buffer on the way holds, so that a write that waited for the watch would never
/// return. From etcd's history (issue 17529): watches that shared a starved stream lost events.
pub async fn a_watch_that_is_not_read_holds_up_nobody_and_loses_nothing(store: Store) {
    let start = store.current_revision().await.unwrap();
    let mut idle = Watch::start(&store, "/big/", start).await;
    let mut healthy = Watch::start(&store, "/big/", start).await;
    let big = Bytes::from(vec![b'x'; 256 << 10]);
    let mut last = None;
    let mut revisions = Vec::new();
    for _ in 0..200 {
        let at = committed(cas(&store, "/big/a", last, Some(big.clone())).await);
        assert_eq!(healthy.event().await.revision, at);
        (last, revisions) = (Some(at), [revisions, vec![at]].concat());
    }
    let seen: Vec<_> = idle.events(200).await.iter().map(|event| event.revision).collect();
    assert_eq!(seen, revisions);
}

pub async fn an_event_is_durable_and_readable_when_it_is_told(store: Store) {
    let start = store.current_revision().await.unwrap();
    let mut watch = Watch::start(&store, "/", start).await;
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..100 {
                create(&store, &format!("/{n}"), "1").await;
            }
        })
    };
    for _ in 0..100 {
        let event = watch.event().await;
        assert!(store.current_revision().await.unwrap() >= event.revision);
        assert_eq!(text(&store, &event.key, Some(event.revision)).await.as_deref(), Some("1"));
    }
    writer.await.unwrap();
}
