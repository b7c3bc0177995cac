//! Serialized times: metav1.Time with whole seconds, metav1.MicroTime with six digits.
//!
//! The submodules are for `#[serde(with = "...")]`.

use jiff::Timestamp;

/// `t` in RFC 3339 with whole seconds, as metav1.Time writes it.
pub fn format_seconds(t: Timestamp) -> String {
    t.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `t` in RFC 3339 with six digits, as metav1.MicroTime writes it.
pub fn format_micros(t: Timestamp) -> String {
    t.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Truncates `t` to the precision of metav1.Time.
pub fn truncate_to_seconds(t: Timestamp) -> Timestamp {
    Timestamp::from_second(t.as_second()).unwrap_or(t)
}

/// Truncates `t` to the precision of metav1.MicroTime.
pub fn truncate_to_micros(t: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(t.as_microsecond()).unwrap_or(t)
}

/// A required metav1.Time.
pub mod seconds {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Serializes with whole seconds.
    pub fn serialize<S: Serializer>(t: &Timestamp, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&super::format_seconds(*t))
    }

    /// Deserializes RFC 3339.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Timestamp, D::Error> {
        Timestamp::deserialize(d)
    }
}

/// An optional metav1.Time; use it with `default` and `skip_serializing_if`.
pub mod optional_seconds {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Serializes with whole seconds.
    pub fn serialize<S: Serializer>(t: &Option<Timestamp>, s: S) -> Result<S::Ok, S::Error> {
        match t {
            Some(t) => s.serialize_str(&super::format_seconds(*t)),
            None => s.serialize_none(),
        }
    }

    /// Deserializes RFC 3339 or null.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Timestamp>, D::Error> {
        Option::<Timestamp>::deserialize(d)
    }
}

/// An optional metav1.MicroTime; use it with `default` and `skip_serializing_if`.
pub mod optional_micros {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Serializes with six digits.
    pub fn serialize<S: Serializer>(t: &Option<Timestamp>, s: S) -> Result<S::Ok, S::Error> {
        match t {
            Some(t) => s.serialize_str(&super::format_micros(*t)),
            None => s.serialize_none(),
        }
    }

    /// Deserializes RFC 3339 or null.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Timestamp>, D::Error> {
        Option::<Timestamp>::deserialize(d)
    }
}
