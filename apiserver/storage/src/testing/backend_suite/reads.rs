//! Reads at the latest revision and at earlier ones.

use super::harness::*;
use crate::backend::{BackendError, Revision, prefix_range};

pub async fn a_key_is_read_as_it_was_at_a_revision(store: Store) {
    let first = create(&store, "/a", "1").await;
    let second = update(&store, "/a", first, "2").await;
    let third = delete(&store, "/a", second).await;
    assert_eq!(text(&store, "/a", Some(first)).await.as_deref(), Some("1"));
    assert_eq!(text(&store, "/a", Some(second)).await.as_deref(), Some("2"));
    assert_eq!(text(&store, "/a", Some(third)).await, None);
    assert_eq!(text(&store, "/a", Some(Revision(first.0 - 1))).await, None);
    let (_, at) = store.get("/a", Some(first)).await.unwrap();
    assert_eq!(at, first, "a read at a revision is a read of that revision");
}

pub async fn a_range_is_in_key_order_and_half_open(store: Store) {
    for key in ["/b/2", "/b/10", "/a/1", "/c/1", "/b", "/b/"] {
        create(&store, key, key).await;
    }
    let found = store.range("/a/1".to_owned().."/c/1".to_owned(), 0, None).await.unwrap();
    let names: Vec<_> = found.items.iter().map(|pair| pair.key.as_str()).collect();
    assert_eq!(names, ["/a/1", "/b", "/b/", "/b/10", "/b/2"]);
    assert_eq!(found.count, 5);
    assert_eq!(found.revision, store.current_revision().await.unwrap());
    assert_eq!(keys(&store, "/b/", None).await, ["/b/", "/b/10", "/b/2"]);
}

pub async fn a_prefix_of_any_text_selects_just_what_starts_with_it(store: Store) {
    for key in ["/ü", "/üa", "/ý", "/z", "/\u{7f}", "/\u{7f}a", "/\u{80}", "/\u{10ffff}b"] {
        create(&store, key, "1").await;
    }
    assert_eq!(keys(&store, "/ü", None).await, ["/ü", "/üa"]);
    assert_eq!(keys(&store, "/\u{7f}", None).await, ["/\u{7f}", "/\u{7f}a"]);
    assert_eq!(keys(&store, "/\u{10ffff}", None).await, ["/\u{10ffff}b"]);
    assert_eq!(keys(&store, "", None).await.len(), 8);
}

pub async fn an_empty_range_is_empty(store: Store) {
    let at = create(&store, "/a", "1").await;
    for keys in ["/a".."/a", "/b".."/a", "/a"..""] {
        let found = store.range(keys.start.to_owned()..keys.end.to_owned(), 0, None).await.unwrap();
        assert_eq!((found.items.len(), found.count, found.revision), (0, 0, at));
    }
}

pub async fn a_range_leaves_out_what_was_deleted(store: Store) {
    let first = create(&store, "/a/1", "1").await;
    let before = create(&store, "/a/2", "1").await;
    delete(&store, "/a/1", first).await;
    assert_eq!(keys(&store, "/a/", None).await, ["/a/2"]);
    assert_eq!(keys(&store, "/a/", Some(before)).await, ["/a/1", "/a/2"]);
    assert_eq!(store.range(prefix_range("/a/"), 1, None).await.unwrap().count, 1);
}

pub async fn pages_at_one_revision_make_the_whole_of_that_revision(store: Store) {
    for n in 0..10 {
        create(&store, &format!("/a/{n}"), "1").await;
    }
    let range = prefix_range("/a/");
    let first = store.range(range.clone(), 4, None).await.unwrap();
    assert_eq!((first.items.len(), first.count), (4, 10));
    // The next page does not see what changes between pages.
    create(&store, "/a/55", "late").await;
    delete(&store, "/a/7", first.items[0].mod_revision.max(Revision(first.revision.0 - 2))).await;
    let rest = format!("{}\0", first.items[3].key)..range.end.clone();
    let second = store.range(rest, 4, Some(first.revision)).await.unwrap();
    assert_eq!((second.items.len(), second.count, second.revision), (4, 6, first.revision));
    let rest = format!("{}\0", second.items[3].key)..range.end;
    let third = store.range(rest, 4, Some(first.revision)).await.unwrap();
    assert_eq!((third.items.len(), third.count), (2, 2));
    let all = [first.items, second.items, third.items].concat();
    let names: Vec<_> = all.into_iter().map(|pair| pair.key).collect();
    assert_eq!(names, (0..10).map(|n| format!("/a/{n}")).collect::<Vec<_>>());
}

pub async fn a_range_longer_than_any_page_is_whole(store: Store) {
    let writes = (0..4500).map(|n| {
        let store = store.clone();
        async move { create(&store, &format!("/many/{n:05}"), "1").await }
    });
    for chunk in writes.collect::<Vec<_>>().into_iter().collect::<Chunks<_>>().0 {
        futures::future::join_all(chunk).await;
    }
    let found = store.range(prefix_range("/many/"), 0, None).await.unwrap();
    assert_eq!((found.items.len(), found.count), (4500, 4500));
    assert!(found.items.windows(2).all(|pair| pair[0].key < pair[1].key));
    let limited = store.range(prefix_range("/many/"), 4100, None).await.unwrap();
    assert_eq!((limited.items.len(), limited.count), (4100, 4500));
    assert_eq!(limited.items, found.items[..4100]);
}

/// Writes, in groups that fit into the queue.
struct Chunks<T>(Vec<Vec<T>>);

impl<T> FromIterator<T> for Chunks<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut chunks = vec![Vec::new()];
        for item in items {
            if chunks.last().is_some_and(|chunk| chunk.len() == 250) {
                chunks.push(Vec::new());
            }
            chunks.last_mut().expect("one is there").push(item);
        }
        Self(chunks)
    }
}

pub async fn a_revision_of_the_future_is_refused(store: Store) {
    let current = create(&store, "/a", "1").await;
    for at in [Revision(current.0 + 1), Revision(current.0 + 1_000_000), Revision(i64::MAX as u64)] {
        for error in errors_at(&store, at).await {
            match error {
                BackendError::FutureRevision { requested, current: known } => {
                    assert_eq!((requested, known), (at, current));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(store.get("/a", Some(Revision(u64::MAX))).await.is_err());
}

pub async fn revision_zero_is_no_revision(store: Store) {
    create(&store, "/a", "1").await;
    for error in errors_at(&store, Revision(0)).await {
        assert!(matches!(error, BackendError::Compacted { .. }), "{error:?}");
    }
}

pub async fn reads_never_go_back(store: Store) {
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..100 {
                create(&store, &format!("/a/{n:03}"), "1").await;
            }
        })
    };
    let readers = (0..4).map(|_| tokio::spawn(watch_revisions_grow(store.clone())));
    let readers: Vec<_> = readers.collect();
    writer.await.unwrap();
    for reader in readers {
        reader.await.unwrap();
    }
}

async fn watch_revisions_grow(store: Store) {
    let mut last = Revision(0);
    loop {
        let found = store.range(prefix_range("/a/"), 0, None).await.unwrap();
        assert!(found.revision >= last);
        let newest = found.items.iter().map(|pair| pair.mod_revision).max().unwrap_or_default();
        assert!(newest <= found.revision);
        let current = store.current_revision().await.unwrap();
        assert!(current >= found.revision, "{current:?} after {:?}", found.revision);
        last = current;
        if found.items.len() == 100 {
            return;
        }
    }
}
