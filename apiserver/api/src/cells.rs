//! Table cells as kubectl shows them.

use jiff::Timestamp;

/// What stands for a value that is not there.
pub const NONE: &str = "<none>";
/// What stands for a value that is not known.
pub const UNKNOWN: &str = "<unknown>";

/// How long ago `t` was (k8s.io/apimachinery/pkg/util/duration.HumanDuration).
pub fn age(t: Option<Timestamp>, now: Timestamp) -> String {
    t.map_or_else(|| UNKNOWN.to_owned(), |t| human_duration(now.as_second() - t.as_second()))
}

/// How long it is until `t`; nothing once it has passed.
pub fn until(t: Option<Timestamp>, now: Timestamp) -> String {
    t.map_or_else(|| UNKNOWN.to_owned(), |t| human_duration((t.as_second() - now.as_second()).max(0)))
}

/// Up to three names, then how many more there are.
pub fn names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = names.len();
    let shown: Vec<&str> = names.take(3).collect();
    match count {
        0 => NONE.to_owned(),
        1..=3 => shown.join(","),
        _ => format!("{} + {} more...", shown.join(","), count - 3),
    }
}

/// Seconds in the two units that matter most.
fn human_duration(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let s = seconds.max(0);
    let (minutes, hours, days) = (s / 60, s / 3600, s / 86_400);
    let two = |big: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{small_unit}"),
    };
    match s {
        0..120 => format!("{s}s"),
        120..600 => two(minutes, "m", s % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_kubectl_writes_them() {
        let cases = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (610, "10m"),
            (3 * 3600 + 60, "3h1m"),
            (9 * 3600, "9h"),
            (49 * 3600, "2d1h"),
            (10 * 86_400, "10d"),
            (800 * 86_400, "2y70d"),
            (9 * 365 * 86_400, "9y"),
        ];
        for (seconds, text) in cases {
            assert_eq!(human_duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn long_lists_are_cut_after_three() {
        assert_eq!(names(Vec::<&str>::new().into_iter()), NONE);
        assert_eq!(names(["a", "b", "c"].into_iter()), "a,b,c");
        assert_eq!(names(["a", "b", "c", "d"].into_iter()), "a,b,c + 1 more...");
    }
}
