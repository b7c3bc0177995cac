//! The size of an object's JSON, with and without its status.

use std::io::{self, Write};

use serde::Serialize;

use super::Object;
use super::managed_fields;

/// Bytes of an object's JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// All fields except `metadata.managedFields`.
    pub fields: usize,
    /// The entries of `metadata.managedFields` that count.
    pub managed: usize,
}

impl Size {
    /// The size of `object` without its status and the managed fields of that.
    pub fn without_status(object: &Object) -> Self {
        let counted = object.0.iter().filter(|(name, _)| *name != "status");
        let fields = counted.map(|(name, value)| json_len(name) + json_len(value) + SEPARATORS).sum();
        Self { fields, managed: managed(object, |subresource| subresource != "status") }
    }

    /// The size of all of `object`.
    pub fn whole(object: &Object) -> Self {
        Self { fields: json_len(&object.0), managed: managed(object, |_| true) }
    }

    /// Returns the bytes of the managed fields that writes to the status have left.
    pub fn of_status_managers(object: &Object) -> usize {
        managed(object, |subresource| subresource == "status")
    }

    /// Returns the sum.
    pub fn total(self) -> usize {
        self.fields + self.managed
    }
}

/// Returns the bytes of the entries of managed fields whose subresource counts.
fn managed(object: &Object, counts: impl Fn(&str) -> bool) -> usize {
    let entries = object.managed_fields().into_iter().flatten();
    entries
        .filter(|entry| counts(&entry.subresource))
        .map(|entry| managed_fields::len(entry) + SEPARATORS)
        .sum()
}

/// Bytes of a colon and a comma, or of the brackets.
const SEPARATORS: usize = 2;

/// Returns the length of a value's JSON in bytes. Its keys must be strings.
pub fn json_len(value: &(impl Serialize + ?Sized)) -> usize {
    let mut counter = Counter(0);
    // Counting cannot fail.
    let counted = serde_json::to_writer(&mut counter, value);
    debug_assert!(counted.is_ok());
    counter.0
}

/// Counts what is written to it.
struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn object(value: &Value) -> Object {
        Object::from(value.as_object().unwrap().clone())
    }

    #[test]
    fn the_size_is_that_of_the_text_within_a_few_bytes() {
        let entry = |subresource: &str| json!({"manager": "m\u{1}", "operation": "Update", "fieldsV1": {"f:spec": {}}, "subresource": subresource});
        let whole = json!({
            "kind": "K", "metadata": {"name": "ä\"", "managedFields": [entry("x"), entry("status")]},
            "spec": {"list": [1, 2.5, null, "\n"]}, "status": {"message": "m".repeat(1000)},
        });
        let mut without = whole.clone();
        without.as_object_mut().unwrap().remove("status");
        without["metadata"]["managedFields"].as_array_mut().unwrap().pop();
        let (size, text) = (Size::without_status(&object(&whole)), object(&without).to_json().len());
        assert!(size.total().abs_diff(text) < 32, "{} and {text}", size.total());
        assert_eq!(size, Size::without_status(&object(&without)));
        assert!(size.managed > 60 && size.fields > 60, "{size:?}");
    }
}
