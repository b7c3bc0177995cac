//! Targets of log lines that report no decision, and what the levels of `-v` show of them.

use std::borrow::Cow;

/// Each write to an object, with its cause (`-v 4`).
pub const WRITES: &str = "writes";
/// Each request, received or sent, with its status and how long it took (`-v 6`).
pub const REQUESTS: &str = "requests";
/// Bodies of requests, without credentials (`-v 8`).
pub const BODIES: &str = "bodies";

/// Maximum bytes of a body that are logged.
const MAX_BODY_SHOWN: usize = 8192;

/// The lowest level for each directive of the filter. Writes, requests and bodies have targets of their own, because
/// they are no decisions.
const LEVELS: [(u8, &str); 5] = [
    // kube_client is off, because we log failed requests ourselves, with their consequences.
    (0, "info,kube_client=off"),
    (2, "drydock=debug"),
    (4, "writes=debug"),
    (6, "requests=debug"),
    (8, "bodies=debug"),
];

/// Returns the filter directives (as in `RUST_LOG`) of a level of `-v`. Each level includes the lower ones.
pub fn directives(level: u8) -> String {
    let shown = LEVELS.iter().filter(|(from, _)| *from <= level).map(|(_, directive)| *directive);
    shown.collect::<Vec<_>>().join(",")
}

/// The first `MAX_BODY_SHOWN` bytes of a body, as text.
pub fn shown_body(body: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&body[..body.len().min(MAX_BODY_SHOWN)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_its_level() {
        for (level, target) in [(4, WRITES), (6, REQUESTS), (8, BODIES)] {
            let directive = format!("{target}=debug");
            let has = |level| directives(level).split(',').any(|shown| shown == directive);
            assert!(has(level) && !has(level - 1), "{target}");
        }
    }

    #[test]
    fn of_a_long_body_the_beginning_is_shown() {
        assert_eq!(shown_body(b"{}"), "{}");
        assert_eq!(shown_body(&[b'x'; 2 * MAX_BODY_SHOWN]).len(), MAX_BODY_SHOWN);
    }
}
