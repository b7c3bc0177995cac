//! Keys of maps.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, Visitor};

/// Reads a map key as text. YAML allows numbers and booleans as keys, and Kubernetes uses their text.
pub(super) struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_str<E: Error>(self, key: &str) -> Result<String, E> {
        Ok(key.to_owned())
    }
    fn visit_string<E: Error>(self, key: String) -> Result<String, E> {
        Ok(key)
    }
    fn visit_bool<E: Error>(self, key: bool) -> Result<String, E> {
        Ok(key.to_string())
    }
    fn visit_i64<E: Error>(self, key: i64) -> Result<String, E> {
        Ok(key.to_string())
    }
    fn visit_u64<E: Error>(self, key: u64) -> Result<String, E> {
        Ok(key.to_string())
    }
    fn visit_f64<E: Error>(self, key: f64) -> Result<String, E> {
        Ok(key.to_string())
    }
}
