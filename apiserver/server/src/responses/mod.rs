//! Responses on their way out: what they hold, how long they may take, and which users lose some when there is no room.
//!
//! ```text
//!   body ──frames──▶ ResponseBody ──pieces of at most 16 KiB──▶ HTTP ──▶ TLS, socket
//!                       │ counts what pieces keep alive, until the transport has taken them
//!                    OpenResponse ◀── OpenResponses: sweeps them once a second, and when there is no more room
//!                       ├ past its deadline: its stream is reset, and its seat given back
//!                       ├ a watch past the deadline of its initial events: their seat is given back
//!                       ├ no progress for 30 s: it drops the past state that it holds
//!                       └ its user is beyond the share, and there is no room: its stream is reset
//! ```
//!
//! A client decides how fast it reads, and a body that it does not read is not polled. So every bound on a response is
//! enforced from outside: the task of its HTTP/2 stream is aborted, or the HTTP/1.1 connection closed.
//!
//! Bounds. A response keeps its seat until the transport has taken its last byte, at most until its deadline
//! (k8s.io/apiserver pkg/server/filters/timeout.go aborts the request); a watch ends at its own timeout. An unread
//! stream has at most 128 KiB and one piece in HTTP's buffers, or two pieces where the client's window is shut; the rest
//! of its body stays here, shared where it can be. All of that together, with 6 KiB for each open response and an upper
//! bound of what past states keep alive, is kept to [`Limits::bytes`]: when there is more, the users whose part is
//! largest lose responses, those without progress for longest first, until all is within seven eighths of it. A user
//! whose part is at most an equal share of that loses none. A user is [`drydock_serving::request::user::User::flow`].
//!
//! Frames are counted as they come, so that too many of them are noticed at once. Past states and waiting events are
//! counted by the sweep each second.

mod body;
mod open_response;
mod open_responses;
mod shedding;
mod sweep;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use drydock_storage::storage::Pinned;
use parking_lot::Mutex;

pub use body::{Piece, ResponseBody};
pub use open_responses::{Delivery, Limits, OpenResponses};

/// An extension of a response whose body streams.
#[derive(Clone)]
pub struct Streaming {
    /// When the stream ends by itself, if that is not the deadline of its request.
    pub ends: Option<Instant>,
    /// When it was ended from outside, if it was. If the client does not read that end, its stream is reset.
    pub ended_at: Option<Arc<OnceLock<Instant>>>,
    /// What it keeps in memory and has not handed to the transport yet.
    pub backlog: Arc<dyn Pinned>,
    /// Bytes that it keeps for as long as it is open, read or not.
    pub constant: usize,
    /// The initial events of a watch that begins with them.
    pub initial: Option<InitialEvents>,
}

impl Default for Streaming {
    /// A stream that ends in its time, and keeps nothing.
    fn default() -> Self {
        Self { ends: None, ended_at: None, backlog: Arc::new(Nothing), constant: 0, initial: None }
    }
}

/// The backlog of a stream that keeps nothing.
struct Nothing;

impl Pinned for Nothing {
    fn bytes(&self) -> usize {
        0
    }

    fn release(&self) {}
}

impl Streaming {
    /// Keeps `guard` until the initial events have been sent, at most until `deadline`; drops it if there are none.
    pub fn keep(&self, guard: impl Send + 'static, deadline: Instant) {
        if let Some(initial) = &self.initial {
            initial.keep(guard, deadline);
        }
    }
}

/// Keeps something, such as seats, until the initial events of a watch have been sent, at most until a deadline, or
/// until the watch is over.
#[derive(Clone, Default)]
pub struct InitialEvents(Arc<Mutex<Option<Until>>>);

struct Until {
    until: Instant,
    _guard: Box<dyn Send>,
}

impl InitialEvents {
    /// Keeps `guard`, at most until `deadline`. A watch makes no progress while its client does not read, so the
    /// sweep over the open responses enforces the deadline.
    pub fn keep(&self, guard: impl Send + 'static, deadline: Instant) {
        *self.0.lock() = Some(Until { until: deadline, _guard: Box::new(guard) });
    }

    /// Drops what is kept, because the events have been sent.
    pub fn sent(&self) {
        // Dropped without the lock.
        let _guard = self.0.lock().take();
    }

    /// Drops what is kept if its deadline has passed.
    fn expire(&self, now: Instant) {
        let _guard = self.0.lock().take_if(|guard| guard.until <= now);
    }
}
