//! Logs: lines on stderr, as containers keep them.

use tracing_subscriber::EnvFilter;

/// Starts logging what `RUST_LOG` asks for, or else `filter`.
pub fn start(filter: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(filter));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
}
