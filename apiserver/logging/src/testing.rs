//! For tests: what a test logs.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// Captures what the current thread logs while the guard lives, as far as `filter` (`warn`, `writes=debug`)
/// lets it through.
pub fn log(filter: &str) -> (CapturedLog, DefaultGuard) {
    let log = CapturedLog::default();
    let to = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(move || to.clone())
        .with_ansi(false)
        .without_time();
    (log, subscriber.set_default())
}

/// Lines of a log. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl CapturedLog {
    /// The lines so far.
    pub fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.0.lock()).lines().map(ToOwned::to_owned).collect()
    }
}

impl io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
