//! The flag `-v`. Each level shows what the lower ones do, and more of it.

use drydock_logging::target;
use tracing_subscriber::EnvFilter;

/// The flag `-v`, the same for both programs; flatten it into theirs.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Verbosity {
    /// How much the log shows: 0 what an operator needs, 2 each decision, 4 each write with its cause, 6 each request with its
    /// status and time, 8 the bodies of requests, without tokens and Secrets; RUST_LOG wins where it is set
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    pub v: u8,
}

/// The filter of a level.
pub(super) fn filter(level: u8) -> EnvFilter {
    EnvFilter::new(target::directives(level))
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
                debug!(target: target::WRITES, "line of 4");
                debug!(target: target::REQUESTS, "line of 6");
                debug!(target: target::BODIES, "line of 8");
                debug!(target: "kube_client", "no line");
            });
            let shown: Vec<u8> = (0..=9).filter(|of| log.contains(&format!("line of {of}"))).collect();
            let expected: Vec<u8> = [0, 2, 4, 6, 8].into_iter().filter(|of| *of <= level).collect();
            assert_eq!((shown, log.contains("no line")), (expected, false), "-v {level}");
        }
    }
}
