//! Compares two values.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::decomposition::{Decomposition, decomposition, is_empty, item_element};
use crate::managed_fields::path::PathElement;
use crate::managed_fields::set::Set;
use crate::object::Object;
use crate::schema::{Field, Schema, Shape};

/// The paths at which two values differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Paths that only the first value has.
    pub removed: Set,
    /// Leaves that both values have and that differ.
    pub modified: Set,
    /// Paths that only the second value has.
    pub added: Set,
}

impl Comparison {
    /// Whether there is no difference.
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Returns the comparison without the paths of `fields` and everything below them.
    fn exclude(mut self, fields: &Set) -> Self {
        for set in [&mut self.removed, &mut self.modified, &mut self.added] {
            set.remove_recursively(fields);
        }
        self
    }

    fn attach(&mut self, element: PathElement, mark: Option<Mark>, below: Self) {
        let Self { removed, modified, added } = below;
        for (set, below) in
            [(&mut self.removed, removed), (&mut self.modified, modified), (&mut self.added, added)]
        {
            if !below.is_empty() {
                set.insert_child(element.clone(), below);
            }
        }
        match mark {
            Some(Mark::Removed) => self.removed.insert_member(element),
            Some(Mark::Modified) => self.modified.insert_member(element),
            Some(Mark::Added) => self.added.insert_member(element),
            None => {}
        }
    }
}

/// How a value itself differs.
#[derive(Clone, Copy)]
enum Mark {
    Removed,
    Modified,
    Added,
}

/// Returns the differences between `old` and `new`.
pub fn compare(old: &Object, new: &Object, schema: &Schema) -> Comparison {
    fields(Some(&old.0), Some(&new.0), schema)
}

/// As [`compare`], without the paths of `excluded` and everything below them; excluded top-level fields are not
/// compared at all.
pub(in crate::managed_fields) fn compare_without(
    old: &Object,
    new: &Object,
    schema: &Schema,
    excluded: &Set,
) -> Comparison {
    let Shape::Object(object) = &schema.shape else { return compare(old, new, schema).exclude(excluded) };
    let mut out = Comparison::default();
    let element = |field: &Field| PathElement::field(field.name);
    for field in object.fields.iter().filter(|field| !excluded.has_member(&element(field))) {
        let (old, new) = (present(Some(&old.0), field), present(Some(&new.0), field));
        pair(&mut out, || element(field), old, new, &field.schema);
    }
    out.exclude(excluded)
}

fn walk(old: Option<&Value>, new: Option<&Value>, schema: &Schema) -> (Option<Mark>, Comparison) {
    let decomposition = decomposition(schema);
    let mark = match (old, new) {
        (None, Some(_)) => Some(Mark::Added),
        (Some(_), None) => Some(Mark::Removed),
        (Some(old), Some(new)) if matches!(decomposition, Decomposition::Leaf) && old != new => {
            Some(Mark::Modified)
        }
        _ => None,
    };
    let below = match decomposition {
        Decomposition::Leaf => Comparison::default(),
        // Two empty values are leaves: null and {} differ.
        _ if is_empty(old) && is_empty(new) => {
            let differ = old.is_some() && new.is_some() && old != new;
            return (mark.or(differ.then_some(Mark::Modified)), Comparison::default());
        }
        Decomposition::Fields => {
            fields(old.and_then(Value::as_object), new.and_then(Value::as_object), schema)
        }
        Decomposition::Items(items, keys) => list_items(old, new, items, keys),
    };
    (mark, below)
}

fn fields(old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>, schema: &Schema) -> Comparison {
    let mut out = Comparison::default();
    match &schema.shape {
        Shape::Object(object) => {
            for field in &object.fields {
                let (old, new) = (present(old, field), present(new, field));
                pair(&mut out, || PathElement::field(field.name), old, new, &field.schema);
            }
        }
        Shape::Map(values) => {
            let added =
                new.into_iter().flatten().filter(|(name, _)| old.is_none_or(|m| !m.contains_key(*name)));
            for (name, old) in old.into_iter().flatten() {
                pair(&mut out, || PathElement::entry(name), Some(old), new.and_then(|m| m.get(name)), values);
            }
            for (name, new) in added {
                pair(&mut out, || PathElement::entry(name), None, Some(new), values);
            }
        }
        _ => {}
    }
    out
}

fn pair(
    out: &mut Comparison,
    element: impl FnOnce() -> PathElement,
    old: Option<&Value>,
    new: Option<&Value>,
    schema: &Schema,
) {
    if old.is_none() && new.is_none() {
        return;
    }
    let (mark, below) = walk(old, new, schema);
    if mark.is_some() || !below.is_same() {
        out.attach(element(), mark, below);
    }
}

/// Returns a field's value. A field that Go always writes has its zero value even if the JSON omits it: a struct that
/// is not a pointer (`spec`) is therefore never added or removed, and no manager owns the struct itself.
fn present<'a>(map: Option<&'a Map<String, Value>>, field: &Field) -> Option<&'a Value> {
    static OBJECT: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));
    static ZERO: LazyLock<Value> = LazyLock::new(|| Value::from(0));
    static STRING: Value = Value::String(String::new());
    static FALSE: Value = Value::Bool(false);
    static NULL: Value = Value::Null;
    let map = map?;
    map.get(field.name).or_else(|| {
        field.always.then(|| match field.schema.shape {
            Shape::Object(_) => &*OBJECT,
            Shape::Int32 | Shape::Int64 => &*ZERO,
            Shape::String => &STRING,
            Shape::Boolean => &FALSE,
            _ => &NULL,
        })
    })
}

fn list_items(old: Option<&Value>, new: Option<&Value>, items: &Schema, keys: &[&'static str]) -> Comparison {
    let mut out = Comparison::default();
    if old == new {
        return out;
    }
    let (old, new) = (indexed(old, items, keys), indexed(new, items, keys));
    let (mut i, mut j) = (0, 0);
    while let Some(element) = [old.get(i), new.get(j)].into_iter().flatten().map(|(e, _)| e).min() {
        let (a, b) = (run(&old[i..], element), run(&new[j..], element));
        same_key(&mut out, element, a, b, items);
        (i, j) = (i + a.len(), j + b.len());
    }
    out
}

type ListItem<'a> = (PathElement, &'a Value);

/// Returns the items by their element; duplicates keep their list order.
fn indexed<'a>(list: Option<&'a Value>, items: &Schema, keys: &[&'static str]) -> Vec<ListItem<'a>> {
    let list = list.and_then(Value::as_array);
    let mut out: Vec<ListItem<'a>> = list
        .into_iter()
        .flatten()
        .filter_map(|v| item_element(v, items, keys).ok().map(|e| (e, v)))
        .collect();
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

fn run<'a, 'b>(items: &'b [ListItem<'a>], element: &PathElement) -> &'b [ListItem<'a>] {
    let len = items.iter().take_while(|(e, _)| e == element).count();
    &items[..len]
}

fn same_key(
    out: &mut Comparison,
    element: &PathElement,
    old: &[ListItem<'_>],
    new: &[ListItem<'_>],
    items: &Schema,
) {
    let (first_old, first_new) = (old.first().map(|(_, v)| *v), new.first().map(|(_, v)| *v));
    let (mark, below) = match (old.len(), new.len()) {
        (0 | 1, 0 | 1) => return pair(out, || element.clone(), first_old, first_new, items),
        (2.., 2..) => {
            let equal = old.iter().map(|(_, v)| v).eq(new.iter().map(|(_, v)| v));
            ((!equal).then_some(Mark::Modified), Comparison::default())
        }
        // One item became several, or several became one: the single item counts as added or removed too.
        (2.., _) => {
            pair(out, || element.clone(), None, first_new, items);
            (Some(Mark::Removed), Comparison::default())
        }
        (_, 2..) => {
            pair(out, || element.clone(), first_old, None, items);
            (Some(Mark::Added), Comparison::default())
        }
    };
    out.attach(element.clone(), mark, below);
}
