//! The end of a stream that comes from outside: a review that said no.

use std::sync::{Arc, OnceLock};
use std::task::Context;
use std::time::Instant;

use futures::task::AtomicWaker;
use tonic::Status;

/// Ends one stream from outside. Shared by the stream's body and whoever may end it.
#[derive(Debug, Default)]
pub(super) struct Ending {
    status: OnceLock<Status>,
    /// When it was ended; whoever sends the stream resets it if the client does not read its end.
    at: Arc<OnceLock<Instant>>,
    body: AtomicWaker,
}

impl Ending {
    /// Ends the stream with this status; the first one counts.
    pub(super) fn end(&self, status: Status) {
        if self.status.set(status).is_ok() {
            let _ = self.at.set(Instant::now());
            self.body.wake();
        }
    }

    /// When the stream was ended, once it was.
    pub(super) fn at(&self) -> Arc<OnceLock<Instant>> {
        self.at.clone()
    }

    /// The status with which the stream ends; if there is none yet, the task is woken when there is.
    pub(super) fn poll(&self, context: &Context<'_>) -> Option<&Status> {
        if self.status.get().is_none() {
            self.body.register(context.waker());
        }
        // In this order: what comes after the waker was registered wakes it.
        self.status.get()
    }
}
