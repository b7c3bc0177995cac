//! Where the items of a list stand, by what identifies them.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::DIRECTIVE;
use super::error::{Error, INCOMPARABLE, Result};
use crate::go_format::type_name;

/// Places of items by the value of their key, or by themselves where there is none.
#[derive(Default)]
pub(super) struct Places {
    first: HashMap<Value, usize>,
    lists: bool,
    maps: bool,
}

impl Places {
    /// The first place of each of these; what is none stands nowhere.
    pub(super) fn of<'v>(identities: impl Iterator<Item = Option<&'v Value>>) -> Self {
        let mut places = Self::default();
        for (place, identity) in identities.enumerate() {
            if let Some(identity) = identity {
                places.add(identity, place);
            }
        }
        places
    }

    /// Notes the place of an item, unless one like it stands before it.
    pub(super) fn add(&mut self, identity: &Value, place: usize) {
        self.lists |= identity.is_array();
        self.maps |= identity.is_object();
        self.first.entry(identity.clone()).or_insert(place);
    }

    /// The place of an item. Go cannot compare two lists or two maps.
    pub(super) fn find(&self, identity: &Value) -> Result<Option<usize>> {
        match identity {
            Value::Array(_) if self.lists => Err(INCOMPARABLE),
            Value::Object(_) if self.maps => Err(INCOMPARABLE),
            Value::Array(_) | Value::Object(_) => Ok(None),
            scalar => Ok(self.first.get(scalar).copied()),
        }
    }
}

/// Kinds of items that a list may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Map,
    Scalar,
}

/// The one kind of all items of the lists (apimachinery: sliceElementType).
pub(super) fn item_kind(lists: &[&[Value]]) -> Result<ItemKind> {
    let mut items = lists.iter().copied().flatten();
    let first =
        items.next().ok_or_else(|| Error::Other("no elements in any of the given slices".to_owned()))?;
    if first.is_array() {
        return Err(Error::ListOfLists);
    }
    let kind = type_name(first);
    // Go asks null for its type, which it has not.
    if first.is_null() || items.any(|item| type_name(item) != kind) {
        return Err(Error::mixed(lists));
    }
    Ok(if first.is_object() { ItemKind::Map } else { ItemKind::Scalar })
}

/// An item that must be a map.
pub(super) fn map(item: &Value) -> Result<&Map<String, Value>> {
    item.as_object().ok_or_else(|| Error::no_map(item))
}

/// What identifies an item of a list of maps.
pub(super) fn key_of<'v>(item: &'v Value, key: &str) -> Result<&'v Value> {
    let map = map(item)?;
    map.get(key).ok_or_else(|| Error::no_merge_key(map, key))
}

/// The items' keys; each must have one.
pub(super) fn keys_of<'v>(items: &'v [Value], key: &str) -> Result<Vec<&'v Value>> {
    items.iter().map(|item| key_of(item, key)).collect()
}

/// Whether an item carries this `$patch`.
pub(super) fn has_directive(item: &Value, directive: &str) -> bool {
    item.get(DIRECTIVE).and_then(Value::as_str) == Some(directive)
}
