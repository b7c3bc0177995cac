//! Logs: lines on stderr, as is usual for containers.
//!
//! ```text
//!   an event ──> EnvFilter (RUST_LOG, or -v) ──> Limit (so many a minute of each kind) ──> Line (bounded, escaped) ──> stderr
//! ```
//!
//! Clients can in part choose the content of lines and how often they are logged. Both are limited here for all code
//! that logs, in our crates and in those that we use.

mod limit;
mod line;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

use drydock_logging::target;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use limit::Limit;
use line::LogLines;

/// The flag `-v`, the same for all programs; flatten it into theirs. Each level shows what the lower ones do, and more
/// of it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Verbosity {
    /// How much the log shows: 0 what an operator needs, 2 each decision, 4 each write with its cause, 6 each request with its
    /// status and time, 8 the bodies of requests, without tokens and Secrets; RUST_LOG wins where it is set
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    pub v: u8,
}

/// Starts logging by the filter in `RUST_LOG`, or else by the level of `-v`. At most 60 errors or warnings, or 600
/// infos, of one kind (one place in the code) are written in a minute; after that minute one line reports how many were
/// left out.
pub fn start(verbosity: Verbosity) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| filter(verbosity.v));
    start_with(filter);
}

/// Starts logging by the filter in `RUST_LOG`, or else only warnings and errors.
pub fn start_quietly() {
    start_with(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn")));
}

fn start_with(filter: EnvFilter) {
    let lines = tracing_subscriber::fmt::layer().with_writer(LogLines::new(std::io::stderr)).with_ansi(false);
    tracing_subscriber::registry().with(lines).with(Limit::start()).with(filter).init();
    std::panic::set_hook(Box::new(log_panic));
}

/// The filter of a level.
fn filter(level: u8) -> EnvFilter {
    EnvFilter::new(target::directives(level))
}

/// Logs a panic as a limited line, so that requests that cause panics cannot fill the log.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    let why = panic.payload_as_str().unwrap_or("no reason is given");
    tracing::error!(location, why, backtrace, "a thread panicked");
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use tracing::{debug, info};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(work: impl FnOnce()) -> String {
        logged_by(EnvFilter::new("trace"), work)
    }

    fn logged_by(filter: EnvFilter, work: impl FnOnce()) -> String {
        let kept = Kept::default();
        let to = kept.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(LogLines::new(move || to.clone()))
            .with_ansi(false)
            .without_time();
        let subscriber = tracing_subscriber::registry().with(lines).with(Limit::start()).with(filter);
        tracing::subscriber::with_default(subscriber, work);
        String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
    }

    /// Regression: each request that failed wrote a line, so ten thousand requests wrote ten thousand lines.
    #[test]
    fn failures_of_one_kind_do_not_fill_the_log_nor_hide_those_of_another() {
        let log = logged(|| {
            (0..10_000).for_each(|n| tracing::warn!(n, "a review failed"));
            tracing::warn!("another kind");
            (0..10_000).for_each(|n| tracing::info!(n, "an object was made"));
        });
        let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
        assert_eq!(
            (count("a review failed"), count("another kind"), count("an object was made")),
            (60, 1, 600)
        );
    }

    #[test]
    fn a_line_stays_one_line_whatever_is_logged() {
        let error = "refused\nWARN all is well";
        let log = logged(|| {
            tracing::warn!(%error, "{error}");
            tracing::warn!("{}", "x".repeat(1 << 20));
        });
        assert_eq!(log.lines().count(), 2, "{log}");
        assert!(log.len() < 20_000);
    }

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
