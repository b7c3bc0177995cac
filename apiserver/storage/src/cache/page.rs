//! Pages of a list from a snapshot.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use super::objects::Objects;
use super::state::Snapshot;
use crate::backend::prefix_range;
use crate::scope::next_key;
use crate::storage::{Items, ListOptions, Page, Scope, Stored};

/// How many objects are looked up at once while a snapshot is read piece by piece.
const PIECE: usize = 64;

/// Cuts one page out of a snapshot.
pub(super) fn page(snapshot: &Snapshot, scope: &Scope, options: &ListOptions) -> Page {
    let start = options.start.as_deref().unwrap_or_default().max(&scope.prefix);
    if options.limit == 0 && scope.matches.is_none() {
        let stretch = Stretch { objects: snapshot.objects.clone(), start: start.to_owned(), end: end(scope) };
        let items = Items::of_snapshot(stretch);
        return Page { items, revision: snapshot.revision, next: None, remaining: None };
    }
    let mut rest = in_scope(snapshot, scope, start);
    let (mut items, mut last) = (Vec::new(), None);
    while !full(items.len(), options.limit) {
        let Some(stored) = rest.next() else {
            return Page { items: items.into(), revision: snapshot.revision, next: None, remaining: None };
        };
        last = Some(&stored.key);
        if scope.selects(stored) {
            items.push(stored.clone());
        }
    }
    let more = rest.next().is_some();
    let remaining = (more && scope.matches.is_none()).then(|| 1 + rest.count() as u64);
    let next = last.filter(|_| more).map(|key| next_key(key));
    Page { items: items.into(), revision: snapshot.revision, next, remaining }
}

/// How many bytes the objects have that a page is cut out of, counted no further than `enough`. Whatever the scope
/// selects, all of them are looked at.
pub(super) fn bytes(snapshot: &Snapshot, scope: &Scope, options: &ListOptions, enough: usize) -> usize {
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

/// The objects under the scope's keys from `start` on, whatever its selection.
pub(super) fn in_scope<'a>(
    snapshot: &'a Snapshot,
    scope: &Scope,
    start: &str,
) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
    let end = end(scope);
    within(&snapshot.objects, start, end.as_deref())
}

/// The first key behind those of a scope.
fn end(scope: &Scope) -> Option<String> {
    match &*scope.prefix {
        "" => None,
        key if scope.single => Some(next_key(key)),
        prefix => Some(prefix_range(prefix).end),
    }
}

/// The end is looked up once: no key is compared on the way there.
fn within<'a>(
    objects: &'a Objects,
    start: &str,
    end: Option<&str>,
) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
    // A range that ends before it starts panics.
    let end = end.map(|end| end.max(start));
    objects.range((Included(start), end.map_or(Unbounded, Excluded)))
}

fn full(items: usize, limit: usize) -> bool {
    limit > 0 && items >= limit
}

/// All objects of a snapshot from a key up to another.
#[derive(Clone)]
pub(crate) struct Stretch {
    objects: Objects,
    start: String,
    end: Option<String>,
}

impl Stretch {
    /// The objects, of which only the next few are held.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Arc<Stored>> + Send + use<> {
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
