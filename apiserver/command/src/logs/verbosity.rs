//! What the levels of `-v` show. Each shows what the lower ones do, and more of it.

use tracing_subscriber::EnvFilter;

/// What each level adds, from which on, as directives of a filter. Requests to the host and their bodies have targets of
/// their own, as do the controllers' writes: they are no decisions.
const LEVELS: [(u8, &str); 5] = [
    // What kube_client says of failed requests, we say ourselves, with what it means.
    (0, "info,kube_client=off"),
    (2, "drydock=debug"),
    (4, "writes=debug"),
    (6, "requests=debug"),
    (8, "bodies=debug"),
];

/// The filter of a level.
pub(super) fn filter(level: u8) -> EnvFilter {
    let shown = LEVELS.iter().filter(|(from, _)| *from <= level).map(|(_, directive)| *directive);
    EnvFilter::new(shown.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use tracing::{debug, info};

    use super::super::tests::logged_by;
    use super::*;

    #[test]
    fn each_level_shows_a_line_that_the_one_below_lacks() {
        for level in 0..=9 {
            let log = logged_by(filter(level), || {
                info!(target: "drydock_maintenance::io", "line of 0");
                debug!(target: "drydock_maintenance::io", "line of 2");
                debug!(target: "writes", "line of 4");
                debug!(target: "requests", "line of 6");
                debug!(target: "bodies", "line of 8");
                debug!(target: "kube_client", "no line");
            });
            let shown: Vec<u8> = (0..=9).filter(|of| log.contains(&format!("line of {of}"))).collect();
            let expected: Vec<u8> = [0, 2, 4, 6, 8].into_iter().filter(|of| *of <= level).collect();
            assert_eq!((shown, log.contains("no line")), (expected, false), "-v {level}");
        }
    }
}
