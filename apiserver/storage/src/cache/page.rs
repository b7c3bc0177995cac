//! Pages of a list from a snapshot.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use super::objects::ObjectMap;
use super::state::Snapshot;
use crate::backend::prefix_range;
use crate::items::SnapshotRange;
use crate::scope::next_key;
use crate::storage::{Items, Page, PageOptions, Scope, Stored};
use crate::work_meter::WorkMeter;

/// Number of objects that are looked up at once while a snapshot is iterated.
const PIECE: usize = 64;

/// Returns one page of a snapshot.
pub(super) async fn page(snapshot: &Snapshot, scope: &Scope, options: &PageOptions) -> Page {
    let start = options.start.as_deref().unwrap_or_default().max(&scope.prefix);
    if scope.matches.is_some() {
        return selected(snapshot, scope, start, options.limit).await;
    }
    if options.limit == 0 {
        return whole(snapshot, Items::of_snapshot(KeyRange::new(snapshot, scope, start)));
    }
    let mut rest = in_scope(snapshot, scope, start);
    let items: Vec<_> = rest.by_ref().take(options.limit).cloned().collect();
    let remaining = rest.count() as u64;
    let next = items.last().filter(|_| remaining > 0).map(|last| next_key(&last.key));
    let remaining = next.is_some().then_some(remaining);
    Page { items: items.into(), revision: snapshot.revision, next, remaining }
}

/// Returns a page of the objects that the scope selects. This may have to decode most objects, so it yields in
/// between.
async fn selected(snapshot: &Snapshot, scope: &Scope, start: &str, limit: usize) -> Page {
    let mut rest = KeyRange::new(snapshot, scope, start).pieces();
    let (mut items, mut work) = (Vec::new(), WorkMeter::default());
    while let Some(stored) = rest.next() {
        work.worked(stored.json_len()).await;
        if !scope.selects(&stored) {
            continue;
        }
        items.push(stored);
        if items.len() == limit {
            let next = rest.next().and(items.last()).map(|last| next_key(&last.key));
            return Page { next, ..whole(snapshot, items.into()) };
        }
    }
    whole(snapshot, items.into())
}

/// Returns a page that is the last one.
fn whole(snapshot: &Snapshot, items: Items) -> Page {
    Page { items, revision: snapshot.revision, next: None, remaining: None }
}

/// Returns the bytes of the objects that are read for a page, counted up to `enough`. With a selection, all objects
/// of the scope from the start on are read.
pub(super) fn bytes(snapshot: &Snapshot, scope: &Scope, options: &PageOptions, enough: usize) -> usize {
    let start = options.start.as_deref().unwrap_or_default().max(&scope.prefix);
    let most = if options.limit == 0 || scope.matches.is_some() { usize::MAX } else { options.limit };
    let mut bytes = 0;
    for stored in in_scope(snapshot, scope, start).take(most) {
        bytes += stored.json_len();
        if bytes >= enough {
            return enough;
        }
    }
    bytes
}

/// Returns the objects whose keys are in the scope, from `start` on; the selection is not applied.
pub(super) fn in_scope<'a>(
    snapshot: &'a Snapshot,
    scope: &Scope,
    start: &str,
) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
    let end = end(scope);
    within(&snapshot.objects, start, end.as_deref())
}

/// Returns the first key after those of a scope; `None` if there is no end.
fn end(scope: &Scope) -> Option<String> {
    match &*scope.prefix {
        "" => None,
        key if scope.single => Some(next_key(key)),
        prefix => Some(prefix_range(prefix).end),
    }
}

/// Returns the objects from `start` up to `end`. The end is looked up once, so keys are not compared during the
/// iteration.
fn within<'a>(
    objects: &'a ObjectMap,
    start: &str,
    end: Option<&str>,
) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
    // A range whose end is below its start panics.
    let end = end.map(|end| end.max(start));
    objects.range((Included(start), end.map_or(Unbounded, Excluded)))
}

/// The objects of a snapshot in a range of keys.
#[derive(Clone)]
struct KeyRange {
    objects: ObjectMap,
    start: String,
    end: Option<String>,
}

impl KeyRange {
    /// The keys of a scope from `start` on; the selection is not applied.
    fn new(snapshot: &Snapshot, scope: &Scope, start: &str) -> Self {
        Self { objects: snapshot.objects.clone(), start: start.to_owned(), end: end(scope) }
    }

    fn pieces(&self) -> impl Iterator<Item = Arc<Stored>> + Send + use<> {
        let Self { objects, start, end } = self.clone();
        let mut next = Some(start);
        std::iter::from_fn(move || {
            let from = next.take()?;
            let piece: Vec<_> = within(&objects, &from, end.as_deref()).take(PIECE).cloned().collect();
            next = piece.last().filter(|_| piece.len() == PIECE).map(|stored| next_key(&stored.key));
            Some(piece)
        })
        .flatten()
    }
}

impl SnapshotRange for KeyRange {
    fn iter(&self) -> Box<dyn Iterator<Item = Arc<Stored>> + Send> {
        Box::new(self.pieces())
    }
}
