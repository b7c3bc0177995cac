//! Merges lists: a list is replaced, added to, or merged item by item.

use std::collections::HashSet;

use serde_json::Value;

use super::error::{Error, Result};
use super::keys::{ItemKind, Positions, item_kind, key_of, map};
use super::lookup::{ListMeta, kind};
use super::merge::{self, DIRECTIVE};
use super::order;
use crate::schema::Schema;

/// Merges the list of a patch into a list, or replaces the list (apimachinery: mergeSliceHandler).
pub(super) fn merge(original: &mut Vec<Value>, patch: &mut [Value], meta: &ListMeta) -> Result<()> {
    if !meta.merges() {
        *original = patch.to_vec();
        return Ok(());
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(());
    }
    match item_kind(&[original, patch])? {
        ItemKind::Scalar => add(original, patch),
        ItemKind::Map => merge_maps(original, patch, meta),
    }
}

/// Removes items from a list of scalars of any strategy.
pub(super) fn delete(original: &mut Vec<Value>, items: &mut [Value], meta: &ListMeta) -> Result<()> {
    if original.is_empty() && items.is_empty() {
        return Ok(());
    }
    match item_kind(&[original, items])? {
        ItemKind::Scalar => {
            let gone: HashSet<&Value> = items.iter().collect();
            original.retain(|item| !gone.contains(item));
            Ok(())
        }
        ItemKind::Map => merge_maps(original, items, meta),
    }
}

/// Adds the scalars that are missing; those of the patch are in its order.
fn add(original: &mut Vec<Value>, patch: &[Value]) -> Result<()> {
    let mut seen = HashSet::new();
    let all = original.iter().chain(patch);
    let merged: Vec<Value> = all.filter(|item| seen.insert(*item)).cloned().collect();
    *original = order::arrange(merged, patch, original, None, Ok(ItemKind::Scalar))?;
    Ok(())
}

fn merge_maps(original: &mut Vec<Value>, patch: &mut [Value], meta: &ListMeta) -> Result<()> {
    let Some(key) = meta.key() else {
        let kind = kind(meta.items);
        return Err(Error::Other(format!("cannot merge lists without merge key for {kind}")));
    };
    let Some(mut plain) = follow_directives(original, patch, key)? else {
        *original = order::arrange(original.clone(), &[], original, Some(key), Ok(ItemKind::Map))?;
        return Ok(());
    };
    let merged = merge_items(original, &mut plain, key, meta.items)?;
    let patch: Vec<Value> = plain.iter().map(|item| (**item).clone()).collect();
    *original = order::arrange(merged, &patch, original, Some(key), Ok(ItemKind::Map))?;
    Ok(())
}

/// Applies the items that have `$patch`. Returns the other items; `None` if they have replaced the list.
fn follow_directives<'p>(
    original: &mut Vec<Value>,
    patch: &'p mut [Value],
    key: &str,
) -> Result<Option<Vec<&'p mut Value>>> {
    let (mut plain, mut replaced, mut gone) = (Vec::new(), false, Vec::new());
    for item in patch {
        match map(item)?.get(DIRECTIVE).map(|d| (d.as_str().unwrap_or_default(), d)) {
            None => plain.push(item),
            Some(("delete", _)) => gone.push(key_of(item, key)?.clone()),
            Some(("replace", _)) => replaced = true,
            Some(("merge", _)) => {
                return Err(Error::Other("merging lists cannot yet be specified in the patch".to_owned()));
            }
            Some((_, directive)) => return Err(Error::unknown_directive(directive, map(item)?)),
        }
    }
    if replaced {
        *original = plain.into_iter().map(|item| item.clone()).collect();
        return Ok(None);
    }
    delete_items(original, &gone, key)?;
    Ok(Some(plain))
}

fn delete_items(original: &mut Vec<Value>, gone: &[Value], key: &str) -> Result<()> {
    let (gone, mut kept) = (Positions::of(gone.iter().map(Some)), Vec::with_capacity(original.len()));
    for item in std::mem::take(original) {
        let found = match map(&item)?.get(key) {
            Some(identity) => gone.find(identity)?.is_some(),
            None => false,
        };
        if !found {
            kept.push(item);
        }
    }
    *original = kept;
    Ok(())
}

/// Returns the list with each item of the patch merged into the item with the same key, or added.
fn merge_items(
    original: &[Value],
    patch: &mut [&mut Value],
    key: &str,
    items: &Schema,
) -> Result<Vec<Value>> {
    let mut merged = original.to_vec();
    let mut positions = Positions::of(original.iter().map(|item| item.get(key)));
    for item in patch {
        let identity = key_of(item, key)?;
        let Some(place) = positions.find(identity)? else {
            positions.add(identity, merged.len());
            merged.push((**item).clone());
            continue;
        };
        if let (Some(Value::Object(present)), Value::Object(patch)) = (merged.get_mut(place), &mut **item) {
            merge::merge_map(present, patch, items)?;
        }
    }
    Ok(merged)
}
