//! The path of a field in its object.

use std::fmt;

/// A path to a field: `spec.items[0].name`, `metadata.labels[a.b/c]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// The path that starts at `name`.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The field `name` below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self::new(name) } else { Self(format!("{}.{name}", self.0)) }
    }

    /// The list item at `index`.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The map entry at `key`.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// Returns the path with another list index, if it leads to an item of the list at `list`, or below one.
    #[must_use]
    pub fn renumbered(&self, list: &str, number: impl FnOnce(usize) -> usize) -> Self {
        let below = self.0.strip_prefix(list).and_then(|rest| rest.strip_prefix('['));
        let split = below.and_then(|rest| rest.split_once(']'));
        match split.and_then(|(index, rest)| Some((index.parse().ok()?, rest))) {
            Some((index, rest)) => Self(format!("{list}[{}]{rest}", number(index))),
            None => self.clone(),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}
