//! Values of table cells, as kubectl shows them.

use crate::table::human_duration;
use jiff::{SignedDuration, Timestamp};

/// Shown for an absent value.
pub const NONE: &str = "<none>";
/// Shown for an unknown value.
pub const UNKNOWN: &str = "<unknown>";

/// The time since `t` (k8s.io/apimachinery/pkg/util/duration.HumanDuration).
pub fn age(t: Option<Timestamp>, now: Timestamp) -> String {
    t.map_or_else(|| UNKNOWN.to_owned(), |t| human_duration(now.duration_since(t)))
}

/// The time until `t`; zero if `t` has passed.
pub fn until(t: Option<Timestamp>, now: Timestamp) -> String {
    t.map_or_else(|| UNKNOWN.to_owned(), |t| human_duration(t.duration_since(now).max(SignedDuration::ZERO)))
}

/// The first three names, and the number of the others.
pub fn names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = names.len();
    let shown: Vec<&str> = names.take(3).collect();
    match count {
        0 => NONE.to_owned(),
        1..=3 => shown.join(","),
        _ => format!("{} + {} more...", shown.join(","), count - 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_after_three() {
        assert_eq!(names(Vec::<&str>::new().into_iter()), NONE);
        assert_eq!(names(["a", "b", "c"].into_iter()), "a,b,c");
        assert_eq!(names(["a", "b", "c", "d"].into_iter()), "a,b,c + 1 more...");
    }
}
