//! The client's own time limit, from the header `grpc-timeout`.

use std::time::Duration;

use drydock_machinery::ApiError;
use http::HeaderMap;

/// The time after which the client gives up; `None` if it names none.
///
/// # Errors
/// 400 if the header is not one to eight digits and a unit: H, M, S, m, u or n.
pub(super) fn of(headers: &HeaderMap) -> Result<Option<Duration>, ApiError> {
    let Some(value) = headers.get("grpc-timeout") else { return Ok(None) };
    let time = value.to_str().ok().and_then(parse);
    time.map(Some).ok_or_else(|| {
        ApiError::bad_request(
            "grpc-timeout must be one to eight digits and one of the units H, M, S, m, u, n",
        )
    })
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_up_to_eight_digits_and_a_unit() {
        assert_eq!(parse("1H"), Some(Duration::from_secs(3600)));
        assert_eq!(parse("2M"), Some(Duration::from_secs(120)));
        assert_eq!(parse("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(parse("250m"), Some(Duration::from_millis(250)));
        assert_eq!(parse("0u"), Some(Duration::ZERO));
        assert_eq!(parse("7n"), Some(Duration::from_nanos(7)));
        for bad in ["", "S", "1", "-1S", "+1S", "1.5S", "123456789S", "1s", "1é", "1 S"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
