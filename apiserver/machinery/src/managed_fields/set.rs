//! Sets of paths, as trees (structured-merge-diff fieldpath.Set).

use super::path::PathElement;
use crate::schema::{Schema, Shape};

/// A set of paths below a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// The paths of one element; sorted.
    pub(super) members: Vec<PathElement>,
    /// The longer paths by their first element; sorted, without empty sets.
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

    /// Adds a path of one element.
    pub(super) fn insert_member(&mut self, element: PathElement) {
        // Elements are usually added in order.
        if self.members.last().is_none_or(|last| *last < element) {
            self.members.push(element);
        } else if let Err(at) = self.members.binary_search(&element) {
            self.members.insert(at, element);
        }
    }

    /// Creates a set from elements in any order. Inserting them one by one would take quadratic time.
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

    /// Whether the set has no paths.
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

    /// Returns the set of the longer paths that begin with `element`, without that element.
    pub(super) fn child(&self, element: &PathElement) -> Option<&Self> {
        self.find_child(element).ok().map(|at| &self.children[at].1)
    }

    /// Returns the set with the struct fields on each path added as members: nothing owns them by themselves, but
    /// they are removed when everything in them is removed.
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

/// Returns the schema of an element, if the schema has it.
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
