//! Merges an applied configuration into a value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::decomposition::{Decomposition, decomposition, is_empty, item_element};
use super::to_set::descend;
use crate::managed_fields::path::PathElement;
use crate::object::Object;
use crate::schema::Schema;

/// Merges `config` into `live`: its leaves win, and its list items keep their relative order.
pub(in crate::managed_fields) fn merge(live: &mut Object, config: Object, schema: &Schema) {
    merge_fields(&mut live.0, config.0, schema);
}

fn merge_fields(live: &mut Map<String, Value>, config: Map<String, Value>, schema: &Schema) {
    for (name, value) in config {
        match (live.get_mut(&name), descend(schema, &name)) {
            (Some(live), Some((_, below))) => merge_values(live, value, below),
            _ => {
                live.insert(name, value);
            }
        }
    }
}

fn merge_values(live: &mut Value, config: Value, schema: &Schema) {
    let decomposition = decomposition(schema);
    if matches!(decomposition, Decomposition::Leaf) || (is_empty(Some(live)) && is_empty(Some(&config))) {
        *live = config;
        return;
    }
    match (decomposition, config) {
        (_, Value::Null) => {}
        (Decomposition::Fields, Value::Object(config)) => match live {
            Value::Object(live) => merge_fields(live, config, schema),
            other => *other = Value::Object(config),
        },
        (Decomposition::Items(items, keys), Value::Array(config)) => {
            let old = match live.take() {
                Value::Array(old) => old,
                _ => Vec::new(),
            };
            *live = Value::Array(merge_lists(old, config, items, keys));
        }
        (_, config) => *live = config,
    }
}

/// One side of a merge; items are removed as they are used.
struct Side {
    elements: Vec<PathElement>,
    values: Vec<Option<Value>>,
    /// The index of each element's item; `None` if several items have it.
    at: BTreeMap<PathElement, Option<usize>>,
}

impl Side {
    fn new(list: Vec<Value>, items: &Schema, keys: &[&'static str]) -> Self {
        let mut side = Self { elements: Vec::new(), values: Vec::new(), at: BTreeMap::new() };
        for value in list {
            let Ok(element) = item_element(&value, items, keys) else { continue };
            let at = side.elements.len();
            side.at.entry(element.clone()).and_modify(|e| *e = None).or_insert(Some(at));
            side.elements.push(element);
            side.values.push(Some(value));
        }
        side
    }

    fn has(&self, element: &PathElement) -> bool {
        self.at.contains_key(element)
    }

    /// Removes and returns the only item of `element`.
    fn take(&mut self, element: &PathElement) -> Option<Value> {
        let at = (*self.at.get(element)?)?;
        self.values[at].take()
    }
}

/// Merges two lists: live items that the configuration lacks keep their place, shared items follow the
/// configuration's order.
fn merge_lists(live: Vec<Value>, config: Vec<Value>, items: &Schema, keys: &[&'static str]) -> Vec<Value> {
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let (mut live, mut config) = (Side::new(live, items, keys), Side::new(config, items, keys));
    let elements = std::mem::take(&mut config.elements);
    let mut shared =
        elements.iter().filter(|e| live.has(e)).cloned().collect::<Vec<_>>().into_iter().peekable();
    let mut merged = BTreeSet::new();
    let (mut l, mut r) = (0, 0);
    while l < live.elements.len() || r < elements.len() {
        if let (Some(element), Some(right)) = (live.elements.get(l), elements.get(r)) {
            if element == right {
                merged.insert(right);
                take_both(&mut out, &mut live, &mut config, right, items);
                (l, r) = (l + 1, r + 1);
                shared.next();
                continue;
            }
            if config.has(element) && shared.peek().is_some_and(|next| next != element) {
                // The item is shared, but another shared item comes first.
                l += 1;
                continue;
            }
        }
        if let Some(element) = live.elements.get(l) {
            if !config.has(element) {
                out.extend(live.values[l].take());
                l += 1;
                continue;
            }
            if merged.contains(element) {
                l += 1;
            }
        }
        if let Some(right) = elements.get(r) {
            merged.insert(right);
            take_both(&mut out, &mut live, &mut config, right, items);
            r += 1;
            shared.next_if(|next| next == right);
        }
    }
    out
}

fn take_both(
    out: &mut Vec<Value>,
    live: &mut Side,
    config: &mut Side,
    element: &PathElement,
    items: &Schema,
) {
    let Some(new) = config.take(element) else { return };
    match live.take(element) {
        Some(mut old) => {
            merge_values(&mut old, new, items);
            out.push(old);
        }
        None => out.push(new),
    }
}
