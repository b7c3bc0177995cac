//! The requests of one connection: whether there are any, and since when there are none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Counts the requests of one connection.
#[derive(Clone, Default)]
pub struct Requests(Arc<Counts>);

#[derive(Default)]
struct Counts {
    open: AtomicUsize,
    seen: AtomicUsize,
}

/// A request whose answer has not been sent.
pub struct Open(Arc<Counts>);

impl Requests {
    /// A request has come.
    pub fn open(&self) -> Open {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        self.0.seen.fetch_add(1, Ordering::Relaxed);
        Open(self.0.clone())
    }

    /// Ends when no request came within `first`, or when there was none for `idle`, up to twice that.
    pub async fn idle(&self, first: Duration, idle: Duration) {
        tokio::time::sleep(first).await;
        let mut seen = 0;
        while self.0.open.load(Ordering::Relaxed) > 0 || self.0.seen.load(Ordering::Relaxed) != seen {
            seen = self.0.seen.load(Ordering::Relaxed);
            tokio::time::sleep(idle).await;
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
