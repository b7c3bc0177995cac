//! Where watchers are registered, and which changes concern them.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use drydock_machinery::Object;
use serde_json::json;

use super::*;
use crate::storage::{RequiredField, Stored};

fn of_field(scope: Scope, path: &[&str], value: &str) -> Scope {
    let mut scope = scope.matching(&["metadata.labels"], |_| true);
    let path = path.iter().map(|name| (*name).to_owned()).collect();
    let field = RequiredField { path, value: value.to_owned() };
    scope.matches.iter_mut().for_each(|selection| selection.requires = Some(field.clone()));
    scope
}

fn of_label(scope: Scope, key: &str) -> Scope {
    of_field(scope, &["metadata", "labels", key], "v")
}

/// The revision of the next change.
static NEXT: AtomicU64 = AtomicU64::new(100);

/// Whether a change of an object with one label would wake a watcher.
fn concerns(watcher_index: &Arc<WatcherIndex>, key: &str, label: &str, watcher: &Registration) -> bool {
    let object = json!({"metadata": {"labels": {label: "v"}}, "spec": {"target": label}});
    let object = object.as_object().cloned().map(Object::from).unwrap_or_default();
    let revision = Revision(NEXT.fetch_add(1, SeqCst));
    let stored = Arc::new(Stored::new(key.to_owned(), object, revision));
    let change = Arc::new(CachedChange::new(revision, key, Some(stored), None, 0));
    let marked = watcher_index.mark([&change].into_iter(), Revision(0));
    marked.groups.iter().any(|group| Arc::ptr_eq(group, &watcher.membership.group))
}

fn groups(watcher_index: &WatcherIndex) -> usize {
    watcher_index.registry.lock().groups().count()
}

#[test]
fn who_is_gone_is_forgotten() {
    let watcher_index = Arc::<WatcherIndex>::default();
    let scopes = [
        Scope::object("a/1"),
        Scope::namespace("a"),
        of_label(Scope::all(), "x.y/z"),
        of_label(Scope::namespace("a"), "x"),
        Scope::all(),
    ];
    let watchers =
        scopes.each_ref().map(|scope| [watcher_index.register(scope), watcher_index.register(scope)]);
    assert_eq!(groups(&watcher_index), 5);
    drop(watchers);
    let registry = watcher_index.registry.lock();
    assert!(registry.objects.is_empty() && registry.namespaces.is_empty() && registry.everything.is_empty());
}

/// Regression: 16 label keys of one tenant used up all index entries, and every other watch was woken by
/// every change.
#[test]
fn the_labels_of_one_namespace_take_no_place_from_others() {
    let watcher_index = Arc::<WatcherIndex>::default();
    let label = |key: usize| of_label(Scope::namespace("a"), &key.to_string());
    let taken: Vec<_> = (0..100).map(|key| watcher_index.register(&label(key))).collect();
    assert!(!concerns(&watcher_index, "a/1", "none", &taken[0]));
    assert!(concerns(&watcher_index, "a/1", "3", &taken[3]));
    assert!(
        concerns(&watcher_index, "a/1", "none", &taken[99]),
        "one that has no place is woken by its namespace"
    );
    assert!(!concerns(&watcher_index, "b/1", "99", &taken[99]), "and by nothing else");
    let others = [of_label(Scope::namespace("b"), "x"), of_label(Scope::all(), "x")]
        .map(|scope| watcher_index.register(&scope));
    for other in &others {
        assert!(concerns(&watcher_index, "b/1", "x", other) && !concerns(&watcher_index, "b/1", "y", other));
    }
    assert!(
        !concerns(&watcher_index, "a/1", "x", &others[0]) && concerns(&watcher_index, "a/1", "x", &others[1])
    );
}

#[test]
fn labels_of_everything_are_bounded_and_take_no_place_from_a_kinds_own_fields() {
    let watcher_index = Arc::<WatcherIndex>::default();
    let _taken: Vec<_> =
        (0..100).map(|key| watcher_index.register(&of_label(Scope::all(), &key.to_string()))).collect();
    assert_eq!(groups(&watcher_index), 17, "16 labels, and all the others together");
    let agent = watcher_index.register(&of_field(Scope::all(), &["spec", "target"], "mine"));
    assert!(
        concerns(&watcher_index, "a/1", "mine", &agent) && !concerns(&watcher_index, "a/1", "other", &agent)
    );
}

/// Regression: marking a change took time for each watcher, and watchers that opened or closed waited
/// for it.
#[test]
fn a_change_that_concerns_a_thousand_watchers_alike_marks_one_group() {
    let watcher_index = Arc::<WatcherIndex>::default();
    let watchers: Vec<_> = (0..1000).map(|_| watcher_index.register(&Scope::namespace("a"))).collect();
    let change = Arc::new(CachedChange::new(Revision(7), "a/1", None, None, 0));
    assert_eq!(watcher_index.mark([&change, &change].into_iter(), Revision(0)).groups.len(), 1);
    for watcher in &watchers {
        assert_eq!(watcher.first_after(Revision(5)), Some(Revision(7)));
        assert_eq!(watcher.first_after(Revision(7)), None);
    }
}
