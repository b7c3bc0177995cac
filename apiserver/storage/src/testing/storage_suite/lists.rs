//! Lists and their pages.

use super::harness::{Fixture, even, keys, read_value};
use crate::backend::Revision;
use crate::storage::{PageOptions, ReadAt, Scope};

async fn fill(fixture: &Fixture, count: u64) {
    for value in 0..count {
        fixture.create(&format!("a/{value:04}"), value).await;
    }
}

/// Reads a list page by page, and calls `between` after each.
async fn paged(
    fixture: &Fixture,
    scope: &Scope,
    limit: usize,
    mut between: impl AsyncFnMut(),
) -> (Vec<(String, u64)>, Vec<usize>) {
    let mut options = PageOptions { at: ReadAt::Latest, limit, start: None };
    let (mut items, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let page = fixture.page(scope, &options).await;
        sizes.push(page.items.len());
        items.extend(page.items.iter().map(|stored| (stored.key.to_string(), read_value(&stored.object()))));
        let Some(next) = page.next else { return (items, sizes) };
        options = PageOptions { at: ReadAt::Exact(page.revision), limit, start: Some(next) };
        between().await;
    }
}

pub async fn an_empty_list_has_a_revision(fixture: Fixture) {
    let page = fixture.list(&Scope::all(), ReadAt::Latest).await;
    assert!(page.items.is_empty() && page.next.is_none() && page.remaining.is_none());
    assert!(page.revision > Revision(0));
}

pub async fn a_list_is_in_key_order_and_within_its_namespace(fixture: Fixture) {
    for key in ["b/2", "a/2", "c/1", "a/1", "b/1"] {
        fixture.create(key, 1).await;
    }
    assert_eq!(keys(&fixture.list(&Scope::all(), ReadAt::Latest).await), ["a/1", "a/2", "b/1", "b/2", "c/1"]);
    assert_eq!(keys(&fixture.list(&Scope::namespace("b"), ReadAt::Latest).await), ["b/1", "b/2"]);
    assert!(fixture.list(&Scope::namespace("none"), ReadAt::Latest).await.items.is_empty());
}

pub async fn a_single_object_is_a_list_of_one(fixture: Fixture) {
    for key in ["a/1", "a/10", "a/2"] {
        fixture.create(key, 2).await;
    }
    assert_eq!(keys(&fixture.list(&Scope::object("a/1"), ReadAt::Latest).await), ["a/1"]);
    assert!(fixture.list(&Scope::object("a/3"), ReadAt::Latest).await.items.is_empty());
    let odd = Scope::object("a/1").matching(&["spec.value"], |object| !even(object));
    assert!(fixture.list(&odd, ReadAt::Latest).await.items.is_empty());
}

pub async fn a_prefix_is_not_mistaken_for_a_longer_name(fixture: Fixture) {
    for key in ["a/1", "a-b/1", "a0/1", "aa/1"] {
        fixture.create(key, 1).await;
    }
    assert_eq!(keys(&fixture.list(&Scope::namespace("a"), ReadAt::Latest).await), ["a/1"]);
}

pub async fn pages_are_consistent_while_others_write(fixture: Fixture) {
    fill(&fixture, 25).await;
    let mut round = 0;
    let (items, sizes) = paged(&fixture, &Scope::all(), 10, async || {
        round += 1;
        fixture.create(&format!("a/0020-{round}"), 99).await;
        fixture.set("a/0015", 1000 + round).await;
        fixture.delete(&format!("a/002{round}")).await;
    })
    .await;
    let expected: Vec<_> = (0..25).map(|value| (format!("a/{value:04}"), value)).collect();
    assert_eq!(items, expected);
    assert_eq!(sizes, [10, 10, 5]);
}

pub async fn a_selection_fills_its_pages(fixture: Fixture) {
    fill(&fixture, 40).await;
    let scope =
        Scope::namespace("a").matching(&["spec.value"], |object| read_value(object).is_multiple_of(10));
    let (items, sizes) = paged(&fixture, &scope, 3, async || ()).await;
    assert_eq!(items.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [0, 10, 20, 30]);
    assert_eq!(sizes, [3, 1]);
}

pub async fn remaining_is_known_without_a_selection(fixture: Fixture) {
    fill(&fixture, 12).await;
    fixture.create("b/other", 1).await;
    let options = PageOptions { at: ReadAt::Latest, limit: 5, start: None };
    let page = fixture.page(&Scope::namespace("a"), &options).await;
    assert_eq!((page.items.len(), page.remaining), (5, Some(7)));
    let selected = Scope::namespace("a").matching(&["spec.value"], even);
    assert_eq!(fixture.page(&selected, &options).await.remaining, None);
    let whole = PageOptions { limit: 12, ..options };
    let page = fixture.page(&Scope::namespace("a"), &whole).await;
    assert_eq!((page.items.len(), page.next, page.remaining), (12, None, None));
}

pub async fn exact_lists_show_the_past(fixture: Fixture) {
    fill(&fixture, 3).await;
    let then = fixture.create("b/1", 1).await;
    fixture.delete("a/0001").await;
    fixture.set("a/0002", 50).await;
    fixture.create("c/1", 1).await;
    let page = fixture.list(&Scope::all(), ReadAt::Exact(then)).await;
    assert_eq!(keys(&page), ["a/0000", "a/0001", "a/0002", "b/1"]);
    assert_eq!((page.revision, read_value(&page.items[2].object())), (then, 2));
}

pub async fn more_than_one_batch_is_one_list(fixture: Fixture) {
    let writers = (0..4).map(|writer| {
        let storage = fixture.storage.clone();
        tokio::spawn(async move {
            for value in 0..700_u64 {
                let key = format!("{writer}/{value:04}");
                storage.create(&key, super::object(&key, value), Default::default()).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let page = fixture.list(&Scope::all(), ReadAt::Latest).await;
    assert_eq!(page.items.len(), 2800);
    assert!(page.items.is_sorted_by(|a, b| a.key < b.key) && page.next.is_none());
    let last_of_each = Scope::all().matching(&["spec.value"], |object| read_value(object) == 699);
    let options = PageOptions { at: ReadAt::Latest, limit: 4, start: None };
    let page = fixture.page(&last_of_each, &options).await;
    assert_eq!(keys(&page), ["0/0699", "1/0699", "2/0699", "3/0699"]);
}
