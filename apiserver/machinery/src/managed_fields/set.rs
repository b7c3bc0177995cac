//! Sets of paths, as trees (structured-merge-diff fieldpath.Set).

use std::cmp::Ordering;

use super::path::PathElement;
use crate::schema::{Schema, Shape};

/// A set of paths below one value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Paths of one step that are in the set; sorted.
    pub(super) members: Vec<PathElement>,
    /// Longer paths by their first step; sorted, never with an empty set.
    pub(super) children: Vec<(PathElement, Set)>,
}

impl Set {
    /// The set of these paths.
    pub fn of(paths: &[&[PathElement]]) -> Self {
        let mut set = Self::default();
        paths.iter().for_each(|p| set.insert(p));
        set
    }

    /// A set of paths through struct fields: `["status"]`, `["metadata", "name"]`.
    pub fn of_fields(paths: &[&[&'static str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<_> = path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    /// Adds a path; the empty path (the whole value) is never a member.
    pub fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => self.insert_member(last.clone()),
            [first, rest @ ..] => self.descend(first).insert(rest),
        }
    }

    /// Adds a path of one step.
    pub(super) fn insert_member(&mut self, element: PathElement) {
        // Elements mostly come in order.
        if self.members.last().is_none_or(|last| *last < element) {
            self.members.push(element);
        } else if let Err(at) = self.members.binary_search(&element) {
            self.members.insert(at, element);
        }
    }

    /// A set of elements in any order. Inserting them one by one would be quadratic.
    pub(super) fn from_unsorted(
        mut members: Vec<PathElement>,
        mut children: Vec<(PathElement, Self)>,
    ) -> Self {
        members.sort();
        members.dedup();
        children.sort_by(|a, b| a.0.cmp(&b.0));
        children.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1 = first.1.union(&later.1);
            }
            same
        });
        Self { members, children }
    }

    /// Adds the paths of `set` below `element`.
    pub(super) fn insert_child(&mut self, element: PathElement, set: Self) {
        if set.is_empty() {
            return;
        }
        if self.children.last().is_none_or(|(last, _)| *last < element) {
            return self.children.push((element, set));
        }
        match self.find_child(&element) {
            Ok(at) => self.children[at].1 = self.children[at].1.union(&set),
            Err(at) => self.children.insert(at, (element, set)),
        }
    }

    /// Whether the set has no path.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.iter().all(|(_, set)| set.is_empty())
    }

    /// Whether `path` itself is in the set.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has_member(last),
            [first, rest @ ..] => self.child(first).is_some_and(|set| set.has(rest)),
        }
    }

    pub(super) fn has_member(&self, element: &PathElement) -> bool {
        self.members.binary_search(element).is_ok()
    }

    /// The longer paths that begin with `element`.
    pub(super) fn child(&self, element: &PathElement) -> Option<&Self> {
        self.find_child(element).ok().map(|at| &self.children[at].1)
    }

    /// Paths of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let members = merge(&self.members, &other.members, |e| e, |a, _| Some(a.clone()), Take::BOTH);
        let both = |a: &(PathElement, Self), b: &(PathElement, Self)| Some((a.0.clone(), a.1.union(&b.1)));
        Self { members, children: merge(&self.children, &other.children, |c| &c.0, both, Take::BOTH) }
    }

    /// Paths of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let members = merge(&self.members, &other.members, |e| e, |a, _| Some(a.clone()), Take::NONE);
        let both = |a: &(PathElement, Self), b: &(PathElement, Self)| filled(&a.0, a.1.intersection(&b.1));
        Self { members, children: merge(&self.children, &other.children, |c| &c.0, both, Take::NONE) }
    }

    /// Paths of this set that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let members = merge(&self.members, &other.members, |e| e, |_, _| None, Take::LEFT);
        let both = |a: &(PathElement, Self), b: &(PathElement, Self)| filled(&a.0, a.1.difference(&b.1));
        Self { members, children: merge(&self.children, &other.children, |c| &c.0, both, Take::LEFT) }
    }

    /// Paths of this set that neither are in `other` nor lie below one of its paths.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let members = merge(&self.members, &other.members, |e| e, |_, _| None, Take::LEFT);
        let both =
            |a: &(PathElement, Self), b: &(PathElement, Self)| filled(&a.0, a.1.recursive_difference(&b.1));
        let mut children = merge(&self.children, &other.children, |c| &c.0, both, Take::LEFT);
        children.retain(|(element, _)| !other.has_member(element));
        Self { members, children }
    }

    /// With the struct fields that lead to a path made members too: nothing owns them by themselves, but removing
    /// all that is in them removes them.
    #[must_use]
    pub(super) fn with_named_fields(&self, schema: &Schema) -> Self {
        let mut out =
            Self { members: self.members.clone(), children: Vec::with_capacity(self.children.len()) };
        for (element, set) in &self.children {
            if is_struct_field(schema, element) {
                out.insert_member(element.clone());
            }
            let below = match step(schema, element) {
                Some(schema) => set.with_named_fields(schema),
                None => set.clone(),
            };
            out.children.push((element.clone(), below));
        }
        out
    }

    /// Calls `f` with every path.
    pub fn for_each(&self, f: &mut dyn FnMut(&[PathElement])) {
        self.walk(&mut Vec::new(), f);
    }

    fn walk(&self, prefix: &mut Vec<PathElement>, f: &mut dyn FnMut(&[PathElement])) {
        for member in &self.members {
            prefix.push(member.clone());
            f(prefix);
            prefix.pop();
        }
        for (element, set) in &self.children {
            prefix.push(element.clone());
            set.walk(prefix, f);
            prefix.pop();
        }
    }

    fn descend(&mut self, element: &PathElement) -> &mut Self {
        let at = match self.find_child(element) {
            Ok(at) => at,
            Err(at) => {
                self.children.insert(at, (element.clone(), Self::default()));
                at
            }
        };
        &mut self.children[at].1
    }

    fn find_child(&self, element: &PathElement) -> Result<usize, usize> {
        self.children.binary_search_by(|(e, _)| e.cmp(element))
    }
}

/// The schema one step down, if the schema has that step.
pub(super) fn step<'a>(schema: &'a Schema, element: &PathElement) -> Option<&'a Schema> {
    match (element, &schema.shape) {
        (PathElement::Field(name), Shape::Object(_) | Shape::Map(_)) => schema.field(name),
        (PathElement::Key(_), Shape::List(items, _)) => Some(items),
        _ => None,
    }
}

fn is_struct_field(schema: &Schema, element: &PathElement) -> bool {
    matches!((element, &schema.shape), (PathElement::Field(name), Shape::Object(_)) if schema.field(name).is_some())
}

fn filled(element: &PathElement, set: Set) -> Option<(PathElement, Set)> {
    (!set.is_empty()).then(|| (element.clone(), set))
}

/// Which unmatched elements a merge takes.
#[derive(Clone, Copy)]
struct Take {
    left: bool,
    right: bool,
}

impl Take {
    const BOTH: Self = Self { left: true, right: true };
    const LEFT: Self = Self { left: true, right: false };
    const NONE: Self = Self { left: false, right: false };
}

/// Walks two sorted lists side by side.
fn merge<T: Clone>(
    a: &[T],
    b: &[T],
    key: impl Fn(&T) -> &PathElement,
    both: impl Fn(&T, &T) -> Option<T>,
    take: Take,
) -> Vec<T> {
    let mut out = Vec::with_capacity(if take.left { a.len() } else { 0 });
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        match key(&a[i]).cmp(key(&b[j])) {
            Ordering::Less => {
                out.extend(take.left.then(|| a[i].clone()));
                i += 1;
            }
            Ordering::Greater => {
                out.extend(take.right.then(|| b[j].clone()));
                j += 1;
            }
            Ordering::Equal => {
                out.extend(both(&a[i], &b[j]));
                (i, j) = (i + 1, j + 1);
            }
        }
    }
    if take.left {
        out.extend_from_slice(&a[i..]);
    }
    if take.right {
        out.extend_from_slice(&b[j..]);
    }
    out
}
