//! Converts any value to the text of a [`FieldsV1`](super::FieldsV1) while it is read, without a tree.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Limits how much may be read.
pub(crate) trait NodeBudget {
    /// Takes one value with this much text from the budget.
    ///
    /// # Errors
    /// If the budget is used up.
    fn spend<E: Error>(&mut self, text: usize) -> Result<(), E>;
}

/// A budget without a limit.
pub(super) struct Unlimited;

impl NodeBudget for Unlimited {
    fn spend<E: Error>(&mut self, _: usize) -> Result<(), E> {
        Ok(())
    }
}

/// Reads any value and returns its JSON; `null` for none.
///
/// # Errors
/// Those of the deserializer and of the budget.
pub(crate) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
    budget: &mut impl NodeBudget,
) -> Result<String, D::Error> {
    let mut written = CanonicalText { text: String::with_capacity(USUAL_SIZE), ..CanonicalText::default() };
    CanonicalWriter { written: &mut written, budget }.deserialize(deserializer)?;
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

/// Initial capacity of the buffer; most sets fit.
const USUAL_SIZE: usize = 512;

#[derive(Default)]
struct CanonicalText {
    text: String,
    /// The last key of each open map, concatenated.
    keys: String,
    /// Whether a key was lower than the one before it.
    unordered: bool,
}

impl CanonicalText {
    /// Returns the text with sorted keys. Servers write sorted keys; some clients may not.
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

struct CanonicalWriter<'w, B> {
    written: &'w mut CanonicalText,
    budget: &'w mut B,
}

impl<B: NodeBudget> CanonicalWriter<'_, B> {
    fn scalar<E: Error>(self, value: impl Into<Value>) -> Result<(), E> {
        self.budget.spend(0)?;
        self.written.text.push_str(&value.into().to_string());
        Ok(())
    }
}

impl<'de, B: NodeBudget> DeserializeSeed<'de> for CanonicalWriter<'_, B> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, B: NodeBudget> Visitor<'de> for CanonicalWriter<'_, B> {
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
            if list.next_element_seed(CanonicalWriter { written, budget })?.is_none() {
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
            map.next_value_seed(CanonicalWriter { written, budget })?;
            first = false;
        }
        written.keys.truncate(level);
        written.text.push('}');
        Ok(())
    }
}

/// Writes a key. YAML allows numbers and booleans as keys, and Kubernetes uses their text.
struct KeyWriter<'w, B> {
    written: &'w mut CanonicalText,
    budget: &'w mut B,
    level: usize,
    first: bool,
}

impl<'de, B: NodeBudget> DeserializeSeed<'de> for KeyWriter<'_, B> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<B: NodeBudget> Visitor<'_> for KeyWriter<'_, B> {
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
