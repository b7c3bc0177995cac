//! Durations as kubectl prints ages (k8s.io/apimachinery/pkg/util/duration).

use jiff::{SignedDuration, Timestamp};

use crate::kind::Now;
use crate::object::Object;
use crate::time::parse_time;

/// Returns the AGE cell of an object: `5m`, or `<unknown>` without a creation time.
pub fn age(object: &Object, now: Now) -> String {
    let created =
        object.meta().and_then(|m| m.get("creationTimestamp")).and_then(|t| t.as_str()).and_then(parse_time);
    created.map_or_else(
        || "<unknown>".to_owned(),
        |created: Timestamp| human_duration(now.duration_since(created)),
    )
}

/// Formats a duration with two or three significant digits: `90s`, `5m30s`, `3h5m`, `2d3h`, `400d`, `3y20d`.
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        // Clocks may differ slightly.
        ..=-2 => "<invalid>".to_owned(),
        -1..=-1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}
