//! Pages of a list from a snapshot.

use std::sync::Arc;

use super::state::Snapshot;
use crate::scope::next_key;
use crate::storage::{ListOptions, Page, Scope, Stored};

/// Cuts one page out of a snapshot.
pub(super) fn page(snapshot: &Snapshot, scope: &Scope, options: &ListOptions) -> Page {
    let start = options.start.as_deref().unwrap_or_default().max(&scope.prefix);
    let mut rest = in_scope(snapshot, scope, start);
    let mut items = Vec::with_capacity(capacity(snapshot, scope, options.limit));
    let mut last = None;
    while !full(items.len(), options.limit) {
        let Some(stored) = rest.next() else {
            return Page { items, revision: snapshot.revision, next: None, remaining: None };
        };
        last = Some(&stored.key);
        if scope.selects(stored) {
            items.push(stored.clone());
        }
    }
    let more = rest.next().is_some();
    let remaining = (more && scope.matches.is_none()).then(|| 1 + rest.count() as u64);
    let next = last.filter(|_| more).map(|key| next_key(key));
    Page { items, revision: snapshot.revision, next, remaining }
}

/// The objects under the scope's keys from `start` on, whatever its selection.
pub(super) fn in_scope<'a>(
    snapshot: &'a Snapshot,
    scope: &'a Scope,
    start: &str,
) -> impl Iterator<Item = &'a Arc<Stored>> {
    snapshot.objects.from(start).take_while(|stored| scope.contains(&stored.key))
}

fn full(items: usize, limit: usize) -> bool {
    limit > 0 && items >= limit
}

fn capacity(snapshot: &Snapshot, scope: &Scope, limit: usize) -> usize {
    let most = if limit == 0 { usize::MAX } else { limit };
    if scope.prefix.is_empty() && scope.matches.is_none() { snapshot.objects.len().min(most) } else { 0 }
}
