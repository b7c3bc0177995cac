//! In which order namespaces are counted when there is no room for all: next is always the one with the least.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Shows `items`, each one of a namespace, by `show`, which returns how much room an item took. An item of the namespace
/// that has taken least comes next, so that of a room that ends none is left for the second item of one namespace before
/// every other had its first, if items are of one size.
pub(super) fn each<T>(items: impl IntoIterator<Item = (String, T)>, mut show: impl FnMut(T) -> usize) {
    let mut waiting = BTreeMap::<String, Vec<T>>::new();
    for (namespace, item) in items {
        waiting.entry(namespace).or_default().push(item);
    }
    let mut queues = waiting.into_values().map(Vec::into_iter).collect::<Vec<_>>();
    let mut least = (0..queues.len()).map(|queue| Reverse((0, queue))).collect::<BinaryHeap<_>>();
    while let Some(Reverse((taken, queue))) = least.pop() {
        if let Some(item) = queues[queue].next() {
            least.push(Reverse((taken + show(item), queue)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_with_the_least_is_next() {
        let items = (0..6).map(|n| ("many", n)).chain([("one", 10), ("two", 20), ("two", 21)]);
        let mut shown = Vec::new();
        each(items.map(|(namespace, item)| (namespace.to_owned(), item)), |item| {
            shown.push(item);
            if item == 0 { 3 } else { 1 }
        });
        assert_eq!(shown, [0, 10, 20, 21, 1, 2, 3, 4, 5]);
    }
}
