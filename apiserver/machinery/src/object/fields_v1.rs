//! `fieldsV1` as text: it is rarely read, and as a tree it would be larger than the rest of the object.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use serde::Deserializer;
use serde_json::Value;

use super::canonical;
use crate::managed_fields::Set;

/// JSON in canonical form: compact, with sorted and unique keys. Whether it is a set of paths is checked when the set
/// is needed.
#[derive(Clone)]
pub struct FieldsV1(Arc<FieldsV1Content>);

struct FieldsV1Content {
    text: String,
    /// The set of paths, once it has been read.
    owned: OnceLock<OwnedPaths>,
}

/// The set of paths in a text.
#[derive(Clone)]
pub(crate) struct OwnedPaths {
    pub set: Arc<Set>,
    /// Whether the set is written as exactly this text.
    pub exact: bool,
}

impl FieldsV1 {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The text as a tree.
    pub fn to_value(&self) -> Value {
        // This text was written here, from a value that had been read before.
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }

    /// Returns the set of paths; it is parsed once for all clones.
    ///
    /// # Errors
    /// If the text is not FieldsV1: a description.
    pub(crate) fn paths(&self) -> Result<OwnedPaths, String> {
        if let Some(paths) = self.0.owned.get() {
            return Ok(paths.clone());
        }
        let (set, exact) = Set::read(self.as_str())?;
        Ok(self.0.owned.get_or_init(|| OwnedPaths { set: Arc::new(set), exact }).clone())
    }

    /// Wraps a text that is already in canonical form.
    pub(crate) fn of_canonical(text: String) -> Self {
        Self(Arc::new(FieldsV1Content { text, owned: OnceLock::new() }))
    }
}

impl From<&Value> for FieldsV1 {
    fn from(value: &Value) -> Self {
        Self::of_canonical(value.to_string())
    }
}

impl From<Arc<Set>> for FieldsV1 {
    fn from(set: Arc<Set>) -> Self {
        let text = set.to_sorted_json();
        Self(Arc::new(FieldsV1Content { text, owned: OwnedPaths { set, exact: true }.into() }))
    }
}

impl PartialEq for FieldsV1 {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.as_str() == other.as_str()
    }
}

impl Eq for FieldsV1 {}

impl Hash for FieldsV1 {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for FieldsV1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for FieldsV1 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        canonical::read(deserializer, &mut canonical::Unlimited).map(Self::of_canonical)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> String {
        serde_json::from_str::<FieldsV1>(json).unwrap().as_str().to_owned()
    }

    fn json() -> impl Strategy<Value = String> {
        let text = "[a-c.:\"\\\\\n\u{1}é]{0,3}";
        let quoted = |text: &String| Value::from(text.as_str()).to_string();
        const SCALARS: [&str; 6] = ["null", "true", "-3", "18446744073709551615", "1.50", "1e3"];
        let leaf = prop_oneof![
            prop::sample::select(&SCALARS[..]).prop_map(str::to_owned),
            text.prop_map(move |t| quoted(&t))
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            let pair = ("[a-c.:\"]{0,2}", inner.clone())
                .prop_map(move |(key, value)| format!("{}: {value}", quoted(&key)));
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(|items| format!("[ {}]", items.join(", "))),
                prop::collection::vec(pair, 0..5).prop_map(|pairs| format!("{{{} }}", pairs.join(" ,"))),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_text_is_that_of_the_tree(json in json()) {
            let tree: Value = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(read(&json), tree.to_string());
            prop_assert_eq!(FieldsV1::from(&tree).to_value(), tree);
        }
    }

    #[test]
    fn keys_are_sorted_and_the_last_of_two_alike_stands() {
        assert_eq!(read(r#"{"f:b":{},"f:a":{".":{}}}"#), r#"{"f:a":{".":{}},"f:b":{}}"#);
        assert_eq!(read(r#"{"f:a":{"f:x":{}},"f:a":{}}"#), r#"{"f:a":{}}"#);
        // As JSON text the escaped quote sorts after the letter, as a key before it.
        assert_eq!(read(r#"{"A":1,"\"":2}"#), r#"{"\"":2,"A":1}"#);
    }
}
