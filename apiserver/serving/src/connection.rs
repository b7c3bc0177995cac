//! A client's connection and its HTTP/2 streams, as far as they can be ended from outside.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use hyper::rt::Executor;
use pin_project_lite::pin_project;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

thread_local! {
    /// The stream whose task is being polled, until [`current`] has taken it.
    static STREAM: Cell<Option<Http2Stream>> = const { Cell::new(None) };
}

/// Runs the streams of HTTP/2 connections as tasks that can be ended: the stream is then reset, and what HTTP has
/// buffered for it is dropped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamExecutor;

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        let stream = Http2Stream::default();
        let task = tokio::spawn(StreamTask { future, stream: Some(stream.clone()) });
        let _ = stream.task.set(task.abort_handle());
    }
}

/// An HTTP/2 stream, by the task that serves it.
#[derive(Clone, Debug, Default)]
pub struct Http2Stream {
    task: Arc<OnceLock<AbortHandle>>,
}

impl Http2Stream {
    /// Resets the stream: its task ends.
    pub fn reset(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    /// The stream that this task serves.
    #[cfg(feature = "test-util")]
    pub fn of(task: AbortHandle) -> Self {
        Self { task: Arc::new(task.into()) }
    }
}

/// Returns the HTTP/2 stream in whose task this is called; `None` in HTTP/1.1, and in every call after the first.
pub fn current() -> Option<Http2Stream> {
    STREAM.take()
}

/// Calls `send` as the task of `stream` does.
#[cfg(feature = "test-util")]
pub fn within<T>(stream: Http2Stream, send: impl FnOnce() -> T) -> T {
    let _entered = Entered::with(stream);
    send()
}

pin_project! {
    /// The task of a stream. It sets [`STREAM`] while it is polled, until [`current`] has taken the stream.
    struct StreamTask<F> {
        #[pin]
        future: F,
        stream: Option<Http2Stream>,
    }
}

impl<F: Future> Future for StreamTask<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(stream) = this.stream.take() else { return this.future.poll(context) };
        if stream.task.get().is_none() {
            // It runs before `execute` has stored its handle, without which it could not be ended.
            *this.stream = Some(stream);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let entered = Entered::with(stream);
        let polled = this.future.poll(context);
        *this.stream = entered.leave();
        polled
    }
}

/// [`STREAM`] is set until this is dropped, also by a panic.
struct Entered;

impl Entered {
    fn with(stream: Http2Stream) -> Self {
        STREAM.set(Some(stream));
        Self
    }

    /// The stream, unless [`current`] has taken it.
    fn leave(self) -> Option<Http2Stream> {
        STREAM.take()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        STREAM.set(None);
    }
}

/// A client's connection, as far as its responses are concerned.
#[derive(Debug, Default)]
pub struct Connection {
    closed: CancellationToken,
    shared: AtomicBool,
}

impl Connection {
    /// Marks a connection that forwards the requests of many users: it is never closed for one of them.
    pub(crate) fn share(&self) {
        if !self.shared.load(Ordering::Relaxed) {
            self.shared.store(true, Ordering::Relaxed);
        }
    }

    /// A connection that forwards the requests of many users.
    #[cfg(feature = "test-util")]
    pub fn shared() -> Self {
        let connection = Self::default();
        connection.share();
        connection
    }

    /// Waits until the connection has to be closed at once.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Whether it forwards the requests of many users.
    pub fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    /// Whether it has to be closed.
    pub fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Asks for it to be closed at once.
    pub fn close(&self) {
        self.closed.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task that runs has been given its stream, and others on the same thread are not.
    #[tokio::test]
    async fn a_stream_is_known_to_its_own_task_alone_and_once() {
        let (done, known) = tokio::sync::oneshot::channel();
        StreamExecutor.execute(async {
            tokio::task::yield_now().await;
            let _ = done.send((current().is_some(), current().is_some()));
        });
        assert_eq!(known.await, Ok((true, false)));
        assert!(current().is_none());
    }

    #[tokio::test]
    async fn a_stream_that_is_reset_drops_what_it_serves() {
        let (send, given) = tokio::sync::oneshot::channel();
        let dropped = CancellationToken::new();
        let guard = dropped.clone().drop_guard();
        StreamExecutor.execute(async move {
            let _guard = guard;
            let _ = send.send(current());
            std::future::pending::<()>().await;
        });
        given.await.into_iter().flatten().for_each(|stream| stream.reset());
        dropped.cancelled().await;
    }
}
