//! Table cells as kubectl shows them.

use drydock_machinery::table::human_duration;
use jiff::{SignedDuration, Timestamp};

/// What stands for a value that is not there.
pub const NONE: &str = "<none>";
/// What stands for a value that is not known.
pub const UNKNOWN: &str = "<unknown>";

/// How long ago `t` was (k8s.io/apimachinery/pkg/util/duration.HumanDuration).
pub fn age(t: Option<Timestamp>, now: Timestamp) -> String {
    t.map_or_else(|| UNKNOWN.to_owned(), |t| human_duration(now.duration_since(t)))
}

/// How long it is until `t`; nothing once it has passed.
pub fn until(t: Option<Timestamp>, now: Timestamp) -> String {
    t.map_or_else(|| UNKNOWN.to_owned(), |t| human_duration(t.duration_since(now).max(SignedDuration::ZERO)))
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
