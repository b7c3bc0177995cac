//! Targets of log lines that are no decisions, and what the levels of `-v` show.

/// Each write to an object, with its cause (`-v 4`).
pub const WRITES: &str = "writes";
/// Each request, received or sent, with its status and how long it took (`-v 6`).
pub const REQUESTS: &str = "requests";
/// Bodies of requests, without credentials (`-v 8`).
pub const BODIES: &str = "bodies";

/// What each level adds, from which on, as directives of a filter. Requests and their bodies have targets of their own, as
/// have writes: they are no decisions.
const LEVELS: [(u8, &str); 5] = [
    // What kube_client says of failed requests, we say ourselves, with what it means.
    (0, "info,kube_client=off"),
    (2, "drydock=debug"),
    (4, "writes=debug"),
    (6, "requests=debug"),
    (8, "bodies=debug"),
];

/// What a level of `-v` shows, as directives of a filter (`RUST_LOG`). Each level shows what the lower ones do, and more.
pub fn directives(level: u8) -> String {
    let shown = LEVELS.iter().filter(|(from, _)| *from <= level).map(|(_, directive)| *directive);
    shown.collect::<Vec<_>>().join(",")
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
}
