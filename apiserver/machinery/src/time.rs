//! Times as the API writes them (metav1.Time, metav1.MicroTime).

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `2006-01-02T15:04:05Z`: RFC 3339 in UTC, whole seconds (fractions are cut).
pub fn format_time(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `2006-01-02T15:04:05.000000Z`: RFC 3339 in UTC, always six digits of fraction.
pub fn format_micro_time(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
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
        assert_eq!(format_time(time), "2024-02-29T22:59:59Z");
        assert_eq!(format_micro_time(time), "2024-02-29T22:59:59.999000Z");
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
