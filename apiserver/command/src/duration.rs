//! Durations in the format of Kubernetes' flags.

use std::time::Duration;

/// Maximum duration of a flag. A much longer one, added to the current time, could overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Parses a duration such as `20m` or `1m30s`; `0` is zero.
///
/// # Errors
/// What is wrong with it, for the error about the flag.
pub fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed: jiff::SignedDuration =
        text.parse().map_err(|_| "not a duration like 20m or 90s".to_owned())?;
    let duration = Duration::try_from(parsed).map_err(|_| "must not be negative".to_owned())?;
    if duration > LONGEST { Err("must be at most 8760h, a year".to_owned()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_in_kubernetes() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("24h"), Ok(Duration::from_secs(24 * 3600)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_no_time_to_wait_is_refused() {
        assert_eq!(duration("-1s"), Err("must not be negative".into()));
        assert_eq!(duration("9000h"), Err("must be at most 8760h, a year".into()));
        assert_eq!(duration("soon"), Err("not a duration like 20m or 90s".into()));
    }
}
