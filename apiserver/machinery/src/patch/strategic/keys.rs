//! The positions of list items by their identity.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::error::{Error, INCOMPARABLE, Result};
use super::merge::DIRECTIVE;
use crate::go_format::type_name;

/// The position of each item by the value of its key, or by the item itself if the list has no key.
#[derive(Default)]
pub(super) struct Positions {
    first: HashMap<Value, usize>,
    lists: bool,
    maps: bool,
}

impl Positions {
    /// Returns the first position of each identity; items without an identity have no position.
    pub(super) fn of<'v>(identities: impl Iterator<Item = Option<&'v Value>>) -> Self {
        let mut positions = Self::default();
        for (position, identity) in identities.enumerate() {
            if let Some(identity) = identity {
                positions.add(identity, position);
            }
        }
        positions
    }

    /// Records the position of an item, unless an equal one is before it.
    pub(super) fn add(&mut self, identity: &Value, position: usize) {
        self.lists |= identity.is_array();
        self.maps |= identity.is_object();
        self.first.entry(identity.clone()).or_insert(position);
    }

    /// Returns the position of an item. Fails if two lists or two maps would be compared, which Go cannot do.
    pub(super) fn find(&self, identity: &Value) -> Result<Option<usize>> {
        match identity {
            Value::Array(_) if self.lists => Err(INCOMPARABLE),
            Value::Object(_) if self.maps => Err(INCOMPARABLE),
            Value::Array(_) | Value::Object(_) => Ok(None),
            scalar => Ok(self.first.get(scalar).copied()),
        }
    }
}

/// The kinds of items in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Map,
    Scalar,
}

/// Returns the one kind of all items of the lists (apimachinery: sliceElementType). Fails if they differ.
pub(super) fn item_kind(lists: &[&[Value]]) -> Result<ItemKind> {
    let mut items = lists.iter().copied().flatten();
    let first =
        items.next().ok_or_else(|| Error::Other("no elements in any of the given slices".to_owned()))?;
    if first.is_array() {
        return Err(Error::ListOfLists);
    }
    let kind = type_name(first);
    // Go asks for the type of null, which has none.
    if first.is_null() || items.any(|item| type_name(item) != kind) {
        return Err(Error::mixed(lists));
    }
    Ok(if first.is_object() { ItemKind::Map } else { ItemKind::Scalar })
}

/// Returns the item as a map, or fails.
pub(super) fn map(item: &Value) -> Result<&Map<String, Value>> {
    item.as_object().ok_or_else(|| Error::no_map(item))
}

/// Returns the identity of an item in a list of maps.
pub(super) fn key_of<'v>(item: &'v Value, key: &str) -> Result<&'v Value> {
    let map = map(item)?;
    map.get(key).ok_or_else(|| Error::no_merge_key(map, key))
}

/// Returns the items' keys. Fails if an item has none.
pub(super) fn keys_of<'v>(items: &'v [Value], key: &str) -> Result<Vec<&'v Value>> {
    items.iter().map(|item| key_of(item, key)).collect()
}

/// Whether an item has this `$patch` directive.
pub(super) fn has_directive(item: &Value, directive: &str) -> bool {
    item.get(DIRECTIVE).and_then(Value::as_str) == Some(directive)
}
