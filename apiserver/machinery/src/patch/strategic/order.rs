//! The order of merged lists: that of the patch, with the items that only the server has near their old position.
//!
//! The order comes from `$setElementOrder`, then from the patch's list, then from the live one (Kubernetes' design
//! proposal cli/preserve-order-in-strategic-merge-patch.md).

use serde_json::{Map, Value};

use super::error::{BAD_ORDER, Error, INCOMPARABLE, Result};
use super::keys::{ItemKind, Positions, has_directive, item_kind, key_of, keys_of, map};
use super::lookup::ListMeta;
use super::merge::{self, DIRECTIVE, SET_ORDER};
use super::{list, lookup};
use crate::schema::Schema;

/// Applies each `$setElementOrder/name` and merges its list (apimachinery: mergePatchIntoOriginal).
pub(super) fn set_orders(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: &Schema,
) -> Result<()> {
    let keys: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for key in keys {
        let order = patch.remove(&key).unwrap_or_default();
        let Value::Array(order) = order else { return Err(Error::no_list(&order)) };
        let name = key.strip_prefix(SET_ORDER).and_then(|rest| rest.strip_prefix('/')).ok_or(BAD_ORDER)?;
        set_order(original, patch, name, &order, schema)?;
    }
    Ok(())
}

fn set_order(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    name: &str,
    order: &[Value],
    schema: &Schema,
) -> Result<()> {
    let live =
        original.get(name).map(|v| v.as_array().ok_or_else(|| Error::no_list(v))).transpose()?.cloned();
    if let Some(value) = patch.get(name).filter(|value| !value.is_array()) {
        return Err(Error::no_list(value));
    }
    let meta = lookup::list(schema, name)?;
    let mut items = patch.get(name).and_then(Value::as_array).cloned();
    check_order(items.as_deref().unwrap_or_default(), order, meta.key())?;
    let Some(merged) = merged(live.as_deref(), items.as_deref_mut(), &meta)? else { return Ok(()) };
    let mut live = live.unwrap_or_default();
    if let (Some(key), Some(items)) = (meta.key(), &items) {
        overwrite_deleted(&mut live, items, key);
    }
    let kind = item_kind(&[&live, items.as_deref().unwrap_or_default()]);
    let arranged = arrange(merged, order, &live, meta.key(), kind)?;
    original.insert(name.to_owned(), arranged.into());
    patch.remove(name);
    Ok(())
}

/// Go removes deleted items from the same array from which it then reads the live order, and puts new items into the
/// space at its end. So new items that replace deleted ones are after all items that stay.
fn overwrite_deleted(live: &mut [Value], patch: &[Value], key: &str) {
    if patch.iter().any(|item| has_directive(item, "replace")) {
        return;
    }
    let gone =
        Positions::of(patch.iter().map(|item| item.get(key).filter(|_| has_directive(item, "delete"))));
    let known = Positions::of(live.iter().map(|item| item.get(key)));
    let is_in = |positions: &Positions, item: &Value| {
        item.get(key).is_some_and(|v| matches!(positions.find(v), Ok(Some(_))))
    };
    let is_new =
        |item: &&Value| item.get(DIRECTIVE).is_none() && (!is_in(&known, item) || is_in(&gone, item));
    let (mut kept, deleted): (Vec<Value>, Vec<Value>) =
        live.iter().cloned().partition(|item| !is_in(&gone, item));
    kept.extend(patch.iter().filter(is_new).take(deleted.len()).cloned());
    live.iter_mut().zip(kept).for_each(|(place, item)| *place = item);
}

/// Returns the merged list before it is arranged; `None` if neither the object nor the patch has one.
fn merged(
    live: Option<&[Value]>,
    patch: Option<&mut [Value]>,
    meta: &ListMeta,
) -> Result<Option<Vec<Value>>> {
    match (live, patch) {
        (None, None) => Ok(None),
        (Some(live), None) => Ok(Some(live.to_vec())),
        (None, Some(patch)) => {
            let new = merge::without_directives(&mut Value::Array(patch.to_vec()));
            Ok(new.and_then(|new| new.as_array().cloned()))
        }
        (Some(live), Some(patch)) => {
            let mut merged = live.to_vec();
            list::merge(&mut merged, patch, meta)?;
            Ok(Some(merged))
        }
    }
}

/// Checks that the patch's items are in the order, one after the other; deletions need not be.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    if key.is_some() {
        patch.iter().try_for_each(|item| map(item).map(drop))?;
    }
    let mut ordered = order.iter();
    for item in patch {
        // An item with another directive is not compared, but must not come after the end of the order.
        if has_directive(item, "delete") && key.is_some() {
            continue;
        }
        if item.get(DIRECTIVE).is_some() {
            if ordered.len() == 0 {
                return Err(Error::order_differs(patch, order));
            }
            continue;
        }
        loop {
            let Some(next) = ordered.next() else { return Err(Error::order_differs(patch, order)) };
            if same(item, next, key)? {
                break;
            }
        }
    }
    Ok(())
}

fn same(left: &Value, right: &Value, key: Option<&str>) -> Result<bool> {
    let (left, right) = match key {
        None => (left, right),
        Some(key) => (key_of(left, key)?, key_of(right, key)?),
    };
    match (left, right) {
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => Err(INCOMPARABLE),
        _ => Ok(left == right),
    }
}

/// Arranges a list in the order of the patch; items that the patch does not name keep their live order (apimachinery:
/// normalizeElementOrder).
pub(super) fn arrange(
    merged: Vec<Value>,
    wanted: &[Value],
    live: &[Value],
    key: Option<&str>,
    kind: Result<ItemKind>,
) -> Result<Vec<Value>> {
    let named = named(wanted, &merged, key)?;
    let (mut of_patch, mut of_server) = (Vec::new(), Vec::new());
    for item in merged {
        let identity = if let Some(key) = key { key_of(&item, key)? } else { &item };
        if named.find(identity)?.is_some() { of_patch.push(item) } else { of_server.push(item) }
    }
    if let (ItemKind::Map, key) = (kind?, key.unwrap_or_default()) {
        keys_of(wanted, key)?;
        keys_of(live, key)?;
    }
    let standing = Positions::of(live.iter().map(|item| key.map_or(Some(item), |key| item.get(key))));
    let place = |positions: &Positions, item: &Value| {
        let identity = key.map_or(Some(item), |key| item.get(key));
        identity.and_then(|identity| positions.find(identity).ok().flatten())
    };
    let of_patch = sorted(of_patch, |item| place(&named, item));
    let of_server = sorted(of_server, |item| place(&standing, item));
    Ok(interleave(of_server, of_patch, |item| place(&standing, item)))
}

/// Returns the position that the patch gives to each item.
fn named(wanted: &[Value], merged: &[Value], key: Option<&str>) -> Result<Positions> {
    let Some(key) = key else {
        let incomparable = wanted.iter().chain(merged).any(|item| item.is_array() || item.is_object());
        return if incomparable { Err(INCOMPARABLE) } else { Ok(Positions::of(wanted.iter().map(Some))) };
    };
    match wanted.iter().position(|item| !item.is_object()) {
        Some(place) if !merged.is_empty() => Err(Error::Other(format!("value for key {place} is not a map"))),
        _ => Ok(Positions::of(wanted.iter().map(|item| item.get(key)))),
    }
}

/// Sorts items by position; items to be deleted are last.
///
/// In Go's comparison an item without a position is less than any other, and any other is less than it, so its
/// insertion sort reverses such a list. Go uses insertion sort for up to twenty items; longer lists keep their order
/// here.
fn sorted(items: Vec<Value>, place: impl Fn(&Value) -> Option<usize>) -> Vec<Value> {
    const INSERTION_SORT: usize = 20;
    let (deleted, items): (Vec<Value>, Vec<Value>) =
        items.into_iter().partition(|item| has_directive(item, "delete"));
    let mut placed: Vec<(Option<usize>, Value)> = items.into_iter().map(|v| (place(&v), v)).collect();
    if placed.iter().all(|(place, _)| place.is_some()) {
        placed.sort_by_key(|(place, _)| *place);
    } else if placed.len() <= INSERTION_SORT {
        let less = |a: Option<usize>, b: Option<usize>| !matches!((a, b), (Some(a), Some(b)) if a >= b);
        for end in 1..placed.len() {
            for at in (1..=end).rev() {
                let (Some(left), Some(right)) = (placed.get(at - 1), placed.get(at)) else { break };
                if !less(right.0, left.0) {
                    break;
                }
                placed.swap(at - 1, at);
            }
        }
    }
    placed.into_iter().map(|(_, item)| item).chain(deleted).collect()
}

/// Merges the server's items between the patch's: each before the first patch item that was after it (apimachinery:
/// mergeSortedSlice).
fn interleave(
    of_server: Vec<Value>,
    of_patch: Vec<Value>,
    place: impl Fn(&Value) -> Option<usize>,
) -> Vec<Value> {
    let mut all = Vec::with_capacity(of_server.len() + of_patch.len());
    // Each position is looked up once, because one server item may be compared with the whole patch.
    let mut of_server = of_server.into_iter().map(|item| (place(&item), item)).peekable();
    for item in of_patch {
        let here = place(&item);
        while let Some((_, next)) =
            of_server.next_if(|(there, _)| matches!((there, here), (Some(a), Some(b)) if *a < b))
        {
            all.push(next);
        }
        all.push(item);
    }
    all.extend(of_server.map(|(_, item)| item));
    all
}
