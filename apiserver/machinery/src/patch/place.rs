//! Where an operation of a JSON patch works: a struct, map or list, and a key of it (RFC 6901, with the negative list
//! indices that kube-apiserver takes). What is wrong is said in the words of gopkg.in/evanphx/json-patch.v4, patch.go.

use serde_json::Value;

use super::budget::Budget;
use super::pointer::{Pointer, container, index, number};

/// A key of a container; whatever is there, or not.
pub(super) struct Place<'a> {
    container: &'a mut Value,
    key: String,
    depth: usize,
}

impl<'a> Place<'a> {
    /// The place that a pointer names; `None` where it leads to no container.
    pub(super) fn find(doc: &'a mut Value, path: &str) -> Option<Self> {
        let pointer = Pointer::parse(path)?;
        let (parents, key) = pointer.split()?;
        let container = container(doc, parents)?;
        let found = container.is_object() || container.is_array();
        found.then(|| Self { container, key: key.to_owned(), depth: pointer.depth() })
    }

    /// What is there. What a struct or map has not is null.
    pub(super) fn get(&self) -> Result<&Value, String> {
        match &*self.container {
            Value::Array(items) => {
                let at = index(number(&self.key)?, items.len())?;
                Ok(&items[at])
            }
            other => Ok(other.get(&self.key).unwrap_or(&Value::Null)),
        }
    }

    /// Puts a value there, in a list before what is there.
    pub(super) fn add(self, value: Value, budget: &mut Budget) -> Result<(), String> {
        budget.place(&value, self.depth)?;
        match self.container {
            Value::Array(items) if self.key == "-" => items.push(value),
            Value::Array(items) => {
                // A negative index counts from the place after the last item.
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

    /// Takes away what is there.
    pub(super) fn remove(self, budget: &mut Budget) -> Result<Value, String> {
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

    /// Puts a value in place of what is there; in a struct or map, of nothing too.
    pub(super) fn set(self, value: Value, budget: &mut Budget) -> Result<(), String> {
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
