//! What can be ended from outside: one HTTP/2 stream, or a connection.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{AbortHandle, Abortable};
use hyper::rt::Executor;
use tokio_util::sync::CancellationToken;

tokio::task_local! {
    /// Ends the task, which serves one HTTP/2 stream.
    static STREAM: AbortHandle;
}

/// Runs the streams of HTTP/2 connections as tasks that can be ended: the stream is then reset, and what HTTP has
/// buffered for it is dropped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streams;

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        let (handle, registration) = AbortHandle::new_pair();
        tokio::spawn(STREAM.scope(handle, Abortable::new(future, registration)));
    }
}

/// What ends the HTTP/2 stream whose task this is called in; nothing in HTTP/1.1.
pub(super) fn current() -> Option<AbortHandle> {
    STREAM.try_with(Clone::clone).ok()
}

/// Runs `future` as the task of a stream does that `handle` ends.
#[cfg(test)]
pub(super) async fn within<T>(handle: AbortHandle, future: impl Future<Output = T>) -> T {
    STREAM.scope(handle, future).await
}

/// A client's connection, as far as its answers are concerned.
#[derive(Debug, Default)]
pub struct Connection {
    closed: CancellationToken,
    shared: AtomicBool,
}

impl Connection {
    /// It forwards the requests of many users: it is never closed for one of them.
    pub fn share(&self) {
        if !self.shared.load(Ordering::Relaxed) {
            self.shared.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until the connection has to be closed at once.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    pub(super) fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    pub(super) fn close(&self) {
        self.closed.cancel();
    }
}
