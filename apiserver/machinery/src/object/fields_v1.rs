//! `fieldsV1` as text: hardly anybody looks into it, and as a tree it would be more than all the rest of an object.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::managed_fields::Set;

/// JSON in the one form in which it is written: compact, keys sorted and each of them once. Whether it is a set of paths
/// is found out by whoever asks for that.
#[derive(Clone)]
pub struct FieldsV1(Arc<Inner>);

struct Inner {
    text: String,
    /// What it is, once somebody has asked.
    owned: OnceLock<Paths>,
}

/// The set of paths that a text is.
#[derive(Clone)]
pub(crate) struct Paths {
    pub set: Arc<Set>,
    /// Whether the set is written as this very text.
    pub exact: bool,
}

impl FieldsV1 {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The text as a tree.
    pub fn to_value(&self) -> Value {
        // It was written here, from what had been read before.
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }

    /// The set of paths, read once for all copies.
    ///
    /// # Errors
    /// A description of what is not FieldsV1.
    pub(crate) fn paths(&self) -> Result<Paths, String> {
        if let Some(paths) = self.0.owned.get() {
            return Ok(paths.clone());
        }
        let (set, exact) = Set::read(self.as_str())?;
        Ok(self.0.owned.get_or_init(|| Paths { set: Arc::new(set), exact }).clone())
    }

    /// Text that is in this form already.
    pub(crate) fn of_canonical(text: String) -> Self {
        Self(Arc::new(Inner { text, owned: OnceLock::new() }))
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
        Self(Arc::new(Inner { text, owned: Paths { set, exact: true }.into() }))
    }
}

impl PartialEq for FieldsV1 {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.as_str() == other.as_str()
    }
}

impl Eq for FieldsV1 {}

impl fmt::Debug for FieldsV1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for FieldsV1 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, &mut Unlimited).map(Self::of_canonical)
    }
}

/// Says how much may be read.
pub(crate) trait Budget {
    /// Takes one value with this much text from what is left.
    ///
    /// # Errors
    /// That there is not enough left.
    fn spend<E: Error>(&mut self, text: usize) -> Result<(), E>;
}

struct Unlimited;

impl Budget for Unlimited {
    fn spend<E: Error>(&mut self, _: usize) -> Result<(), E> {
        Ok(())
    }
}

/// Reads any value into the text of a [`FieldsV1`]; `null` for none.
///
/// # Errors
/// Those of the deserializer, and of the budget.
pub(crate) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
    budget: &mut impl Budget,
) -> Result<String, D::Error> {
    let mut written = Written { text: String::with_capacity(USUAL_SIZE), ..Written::default() };
    Writer { written: &mut written, budget }.deserialize(deserializer)?;
    Ok(written.in_order())
}

/// Appends a string as JSON.
pub(crate) fn write_string(text: &str, out: &mut String) {
    if text.bytes().any(|byte| matches!(byte, b'"' | b'\\' | ..b' ')) {
        return out.push_str(&Value::from(text).to_string());
    }
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// Bytes that hold most sets.
const USUAL_SIZE: usize = 512;

#[derive(Default)]
struct Written {
    text: String,
    /// The last key of each map that is open, one behind the other.
    keys: String,
    /// Whether a key came after one that it stands before.
    unordered: bool,
}

impl Written {
    /// Servers write them in order; of clients, some may not.
    fn in_order(self) -> String {
        let sorted = || serde_json::from_str::<Value>(&self.text).ok().map(|value| value.to_string());
        self.unordered.then(sorted).flatten().unwrap_or(self.text)
    }

    fn key(&mut self, key: &str, level: usize, first: bool) {
        if !first {
            self.unordered |= self.keys[level..] >= *key;
            self.keys.truncate(level);
            self.text.push(',');
        }
        self.keys.push_str(key);
        write_string(key, &mut self.text);
        self.text.push(':');
    }
}

struct Writer<'w, B> {
    written: &'w mut Written,
    budget: &'w mut B,
}

impl<B: Budget> Writer<'_, B> {
    fn scalar<E: Error>(self, value: impl Into<Value>) -> Result<(), E> {
        self.budget.spend(0)?;
        self.written.text.push_str(&value.into().to_string());
        Ok(())
    }
}

impl<'de, B: Budget> DeserializeSeed<'de> for Writer<'_, B> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, B: Budget> Visitor<'de> for Writer<'_, B> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.scalar(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.scalar(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.budget.spend(text.len())?;
        write_string(text, &mut self.written.text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { written, budget } = self;
        budget.spend(0)?;
        written.text.push('[');
        let begin = written.text.len();
        loop {
            let before = written.text.len();
            if before > begin {
                written.text.push(',');
            }
            if list.next_element_seed(Writer { written, budget })?.is_none() {
                written.text.truncate(before);
                written.text.push(']');
                return Ok(());
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { written, budget } = self;
        budget.spend(0)?;
        written.text.push('{');
        let (level, mut first) = (written.keys.len(), true);
        while map.next_key_seed(KeyWriter { written, budget, level, first })?.is_some() {
            map.next_value_seed(Writer { written, budget })?;
            first = false;
        }
        written.keys.truncate(level);
        written.text.push('}');
        Ok(())
    }
}

/// Writes a key. YAML has numbers and booleans for keys, and Kubernetes takes their text.
struct KeyWriter<'w, B> {
    written: &'w mut Written,
    budget: &'w mut B,
    level: usize,
    first: bool,
}

impl<'de, B: Budget> DeserializeSeed<'de> for KeyWriter<'_, B> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<B: Budget> Visitor<'_> for KeyWriter<'_, B> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<(), E> {
        self.budget.spend(key.len())?;
        self.written.key(key, self.level, self.first);
        Ok(())
    }

    fn visit_bool<E: Error>(self, key: bool) -> Result<(), E> {
        self.visit_str(&key.to_string())
    }

    fn visit_i64<E: Error>(self, key: i64) -> Result<(), E> {
        self.visit_str(&key.to_string())
    }

    fn visit_u64<E: Error>(self, key: u64) -> Result<(), E> {
        self.visit_str(&key.to_string())
    }

    fn visit_f64<E: Error>(self, key: f64) -> Result<(), E> {
        self.visit_str(&key.to_string())
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
        // As text the quote stands behind the letter, as a key before it.
        assert_eq!(read(r#"{"A":1,"\"":2}"#), r#"{"\"":2,"A":1}"#);
    }
}
