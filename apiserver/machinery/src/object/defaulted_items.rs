//! Tracks which items of a list were inserted by a kind's defaults, so that an error about an item has its index in
//! the list that the client sent.

use std::sync::Arc;

use serde_json::Value;

use super::Object;
use crate::field::Error;

/// The items that defaults inserted into a list. They are stored beside the object: they are not encoded, and objects
/// that differ only in them are equal.
#[derive(Clone, Debug, Default)]
pub(super) struct DefaultedItems(Option<Arc<ItemIndexes>>);

#[derive(Debug)]
struct ItemIndexes {
    list: &'static str,
    /// Their indexes, ascending.
    at: Vec<usize>,
}

impl PartialEq for DefaultedItems {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Object {
    /// Records that defaults inserted the items at these indexes, in ascending order, into the list at a dotted path.
    pub fn record_defaulted(&mut self, list: &'static str, at: Vec<usize>) {
        self.2 = DefaultedItems((!at.is_empty()).then(|| Arc::new(ItemIndexes { list, at })));
    }

    /// Copies the record of `before`, from which this object was made, if the list is unchanged.
    pub fn keep_defaulted(&mut self, before: &Self) {
        if let Some(items) = &before.2.0
            && self.list(items.list) == before.list(items.list)
        {
            self.2 = before.2.clone();
        }
    }

    /// Returns the errors with the indexes that the items had before defaults inserted others.
    pub fn number_as_sent(&self, mut errors: Vec<Error>) -> Vec<Error> {
        let Some(items) = &self.2.0 else { return errors };
        for error in &mut errors {
            let sent = |index: usize| index - items.at.partition_point(|inserted| *inserted < index);
            error.path = error.path.renumbered(items.list, sent);
        }
        errors
    }

    fn list(&self, path: &str) -> Option<&Value> {
        let mut steps = path.split('.');
        let first = self.0.get(steps.next()?);
        steps.fold(first, |value, step| value?.get(step))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::field::Path;

    fn object(items: Value) -> Object {
        let Value::Object(tree) = json!({"spec": {"items": items}}) else { return Object::default() };
        Object::from(tree)
    }

    fn numbered(object: &Object, path: Path) -> String {
        object.number_as_sent(vec![Error::required(path, "")])[0].path.to_string()
    }

    #[test]
    fn an_index_is_told_as_it_was_sent() {
        let path = Path::new("spec").child("items");
        let mut changed = object(json!([0, 1, 2, 3]));
        assert_eq!(numbered(&changed, path.index(3)), "spec.items[3]");
        changed.record_defaulted("spec.items", vec![0, 2]);
        assert_eq!(numbered(&changed, path.index(1).child("name")), "spec.items[0].name");
        assert_eq!(numbered(&changed, path.index(3)), "spec.items[1]");
        for other in [path.clone(), path.key("x"), Path::new("spec").child("itemsets").index(3)] {
            assert_eq!(numbered(&changed, other.clone()), other.to_string());
        }
    }

    #[test]
    fn the_note_is_no_part_of_the_object_and_goes_with_its_list() {
        let mut noted = object(json!([0, 1]));
        noted.record_defaulted("spec.items", vec![0]);
        assert_eq!(noted, object(json!([0, 1])));
        assert_eq!(noted.to_json(), object(json!([0, 1])).to_json());
        let at = || Path::new("spec").child("items").index(1);
        for (items, index) in [(json!([0, 1]), "spec.items[0]"), (json!([1, 0]), "spec.items[1]")] {
            let mut patched = object(items);
            patched.keep_defaulted(&noted);
            assert_eq!(numbered(&patched, at()), index);
        }
    }
}
