//! The location of an operation of a JSON patch: a struct, map or list, and a key in it (RFC 6901, with the negative
//! list indices that kube-apiserver accepts). Errors have the messages of gopkg.in/evanphx/json-patch.v4, patch.go.

use serde_json::Value;

use super::budget::PatchBudget;
use super::pointer::{Pointer, container, index, number};

/// A key of a container; there may be no value.
pub(super) struct Location<'a> {
    container: &'a mut Value,
    key: String,
    depth: usize,
}

impl<'a> Location<'a> {
    /// Returns the location that a pointer names; `None` if it leads to no container.
    pub(super) fn find(doc: &'a mut Value, path: &str) -> Option<Self> {
        let pointer = Pointer::parse(path)?;
        let (parents, key) = pointer.split()?;
        let container = container(doc, parents)?;
        let found = container.is_object() || container.is_array();
        found.then(|| Self { container, key: key.to_owned(), depth: pointer.depth() })
    }

    /// Returns the value. An absent value of a struct or map is null.
    pub(super) fn get(&self) -> Result<&Value, String> {
        match &*self.container {
            Value::Array(items) => {
                let at = index(number(&self.key)?, items.len())?;
                Ok(&items[at])
            }
            other => Ok(other.get(&self.key).unwrap_or(&Value::Null)),
        }
    }

    /// Adds a value; in a list, before the item at the index.
    pub(super) fn add(self, value: Value, budget: &mut PatchBudget) -> Result<(), String> {
        budget.place(&value, self.depth)?;
        match self.container {
            Value::Array(items) if self.key == "-" => items.push(value),
            Value::Array(items) => {
                // A negative index counts from the position after the last item.
                let number = number(&self.key)
                    .map_err(|why| format!("value was not a proper array index: '{}': {why}", self.key))?;
                let at = index(number, items.len() + 1)?;
                budget.shift(items.len() - at)?;
                items.insert(at, value);
            }
            other => drop(other.as_object_mut().and_then(|map| map.insert(self.key, value))),
        }
        Ok(())
    }

    /// Removes and returns the value.
    pub(super) fn remove(self, budget: &mut PatchBudget) -> Result<Value, String> {
        match self.container {
            Value::Array(items) => {
                let at = index(number(&self.key)?, items.len())?;
                budget.shift(items.len() - at)?;
                Ok(items.remove(at))
            }
            other => {
                let removed = other.as_object_mut().and_then(|map| map.remove(&self.key));
                removed
                    .ok_or_else(|| format!("Unable to remove nonexistent key: {}: missing value", self.key))
            }
        }
    }

    /// Replaces the value. In a struct or map, the value need not exist.
    pub(super) fn set(self, value: Value, budget: &mut PatchBudget) -> Result<(), String> {
        budget.place(&value, self.depth)?;
        match self.container {
            Value::Array(items) => {
                let at = index(number(&self.key)?, items.len())?;
                items[at] = value;
            }
            other => drop(other.as_object_mut().and_then(|map| map.insert(self.key, value))),
        }
        Ok(())
    }
}
