//! Times as the API writes and reads them: metav1.Time with whole seconds, metav1.MicroTime with six digits.
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

/// Parses RFC 3339 as Go's time.Parse(time.RFC3339) does, with any fraction.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    is_rfc3339(text.as_bytes()).then(|| text.parse().ok()).flatten()
}

/// jiff accepts other ISO 8601 forms too; the API does not.
fn is_rfc3339(text: &[u8]) -> bool {
    let Some((date, rest)) = text.split_at_checked(19) else { return false };
    if !matches_pattern(date, b"0000-00-00T00:00:00") {
        return false;
    }
    let fraction = match rest.strip_prefix(b".") {
        Some(digits) => 1 + digits.iter().take_while(|b| b.is_ascii_digit()).count(),
        None => 0,
    };
    let zone = rest.get(fraction..).unwrap_or_default();
    fraction != 1 && (zone == b"Z" || matches_pattern(zone, b"+00:00") || matches_pattern(zone, b"-00:00"))
}

/// Whether each byte is a digit where the pattern has `0`, and the pattern's byte elsewhere.
fn matches_pattern(text: &[u8], pattern: &[u8]) -> bool {
    text.len() == pattern.len()
        && text.iter().zip(pattern).all(|(b, p)| if *p == b'0' { b.is_ascii_digit() } else { b == p })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_are_cut_to_seconds_and_moved_to_utc() {
        let time = parse_time("2024-02-29T23:59:59.999+01:00").unwrap();
        assert_eq!(format_seconds(time), "2024-02-29T22:59:59Z");
        assert_eq!(format_micros(time), "2024-02-29T22:59:59.999000Z");
    }

    #[test]
    fn only_rfc3339_is_a_time() {
        for bad in [
            "",
            "2024-02-29",
            "2024-02-29 00:00:00Z",
            "2024-02-29T00:00:00",
            "2024-02-29T00:00:00.Z",
            "2024-02-30T00:00:00Z",
            "20240229T000000Z",
            "2024-02-29T00:00:00+0100",
            "now",
        ] {
            assert!(parse_time(bad).is_none(), "{bad}");
        }
    }
}
