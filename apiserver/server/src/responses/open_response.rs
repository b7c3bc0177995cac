//! One open response: what it holds, its progress, and how it is ended from outside.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::task::Context;
use std::time::{Duration, Instant};

use drydock_serving::clock;
use drydock_serving::connection::{self, Connection, Http2Stream};
use drydock_serving::request::user::User;
use futures::task::AtomicWaker;
use parking_lot::Mutex;

use super::Streaming;
use super::open_responses::{LATE, Shared};

/// Bytes that every open response counts for: its stream, its task, its head, a watch's entry in the cache's index of
/// watchers, and [`SMALL`] bytes of frames.
pub(super) const BASE: usize = 6 * 1024;
/// Maximum bytes of small frames that the transport is given before they are counted; [`BASE`] includes them. It is
/// also the most that HTTP still holds when the task of a stream has ended: only the end of the connection frees
/// that.
pub(super) const SMALL: usize = 4 * 1024;
/// Time in which an ended response frees what it holds.
const ENDING: Duration = Duration::from_secs(1);

/// An open response and what it keeps until it has been sent: its seat, for one.
pub(super) struct OpenResponse<G> {
    pub(super) account: ResponseAccount,
    pub(super) guard: Mutex<Option<G>>,
}

/// An open response, whatever it keeps.
pub(super) trait Tracked: Send + Sync {
    fn account(&self) -> &ResponseAccount;
    /// Gives back what it keeps: its time is up, and the transport may never take the rest.
    fn give_back(&self);
}

impl<G: Send> Tracked for OpenResponse<G> {
    fn account(&self) -> &ResponseAccount {
        &self.account
    }

    fn give_back(&self) {
        // Dropped without the lock.
        let _guard = self.guard.lock().take();
    }
}

/// The account of an open response.
pub(super) struct ResponseAccount {
    /// The user, where it is known.
    pub(super) user: Option<Arc<User>>,
    pub(super) connection: Arc<Connection>,
    deadline: Instant,
    /// What its body says of itself.
    streaming: Option<Streaming>,
    stream: Option<Http2Stream>,
    shared: Arc<Shared>,
    slot: usize,
    /// Bytes that are counted for as long as it is open.
    base: usize,
    /// Bytes of frames that are counted, and not freed.
    frames: AtomicUsize,
    /// Bytes that the transport was given, and those of them that are counted. Only the body writes them.
    given: AtomicU64,
    counted: AtomicU64,
    /// Bytes that are counted which the transport has taken.
    taken: AtomicU64,
    /// Whether the body has nothing to give: the transport has asked for more, and there was none.
    is_idle: AtomicBool,
    /// Whether the body waits for the transport to take what it was given.
    waits: AtomicBool,
    body: AtomicWaker,
    watched: Mutex<SendProgress>,
}

/// The progress of a response, for the sweep alone.
#[derive(Clone, Copy)]
struct SendProgress {
    /// Grows with every piece that the transport is given or takes.
    progress: u64,
    since: Instant,
    ended: Option<(Ended, Instant)>,
}

/// What has been ended for a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Stream,
    Connection,
}

/// What the sweep sees of a response.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// Whether the transport has not taken everything that it was given.
    pub(super) unread: bool,
    /// Since when it has taken nothing.
    pub(super) since: Instant,
    /// What has been ended for it.
    pub(super) ended: Option<Ended>,
    /// Whether that was less than [`ENDING`] ago: what it holds is about to be freed.
    pub(super) ending: bool,
}

impl ResponseAccount {
    /// The account of a response that is sent on `connection` by the task that calls this.
    pub(super) fn open(
        (shared, slot): (Arc<Shared>, usize),
        (user, connection): (Option<Arc<User>>, Arc<Connection>),
        deadline: Instant,
        streaming: Option<Streaming>,
    ) -> Self {
        let base = BASE + streaming.as_ref().map_or(0, |streaming| streaming.constant);
        shared.charge(base);
        Self {
            base,
            user,
            connection,
            deadline,
            streaming,
            stream: connection::current(),
            shared,
            slot,
            frames: AtomicUsize::new(0),
            given: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            is_idle: AtomicBool::new(true),
            waits: AtomicBool::new(false),
            body: AtomicWaker::new(),
            watched: Mutex::new(SendProgress { progress: 0, since: clock::now(), ended: None }),
        }
    }

    /// Counts `bytes` of frames as held.
    pub(super) fn charge(&self, bytes: usize) {
        if bytes > 0 {
            self.frames.fetch_add(bytes, Relaxed);
            self.shared.charge(bytes);
        }
    }

    /// Records that the transport is given a piece of `bytes`.
    pub(super) fn give(&self, bytes: usize) {
        self.given.store(self.given.load(Relaxed) + bytes as u64, Relaxed);
        self.is_idle.store(false, Relaxed);
    }

    /// Counts `bytes` of what the transport was given; [`Self::took`] is called for them.
    pub(super) fn count(&self, bytes: usize) {
        self.counted.store(self.counted.load(Relaxed) + bytes as u64, SeqCst);
    }

    /// Records that the transport has asked for more, and that there is nothing.
    pub(super) fn idles(&self) {
        self.is_idle.store(true, Relaxed);
    }

    /// Records that the transport has taken or dropped `bytes` that were counted, which frees `frees` bytes.
    pub(super) fn took(&self, bytes: usize, frees: usize) {
        self.taken.fetch_add(bytes as u64, SeqCst);
        if frees > 0 {
            self.frames.fetch_sub(frees, Relaxed);
            self.shared.free(frees);
        }
        if self.waits.load(SeqCst) {
            self.body.wake();
        }
    }

    /// Whether so little is unread that the task of the stream may end; if not, the task is woken when something is
    /// taken. The last `uncounted` bytes have not been counted.
    pub(super) fn is_nearly_read(&self, uncounted: usize, context: &Context<'_>) -> bool {
        let most = (SMALL - uncounted.min(SMALL)) as u64;
        if self.unread() <= most {
            return true;
        }
        self.body.register(context.waker());
        self.waits.store(true, SeqCst);
        // In this order: what was taken before the waker was there is seen now.
        self.unread() <= most
    }

    /// Bytes that are counted and that the transport has not taken.
    fn unread(&self) -> u64 {
        let taken = self.taken.load(SeqCst);
        self.counted.load(SeqCst).saturating_sub(taken)
    }

    /// Everything that it holds.
    pub(super) fn bytes(&self) -> usize {
        let backlog = self.streaming.as_ref().map_or(0, |streaming| streaming.backlog.bytes());
        self.base + self.frames.load(Relaxed).saturating_add(backlog)
    }

    /// Its progress at `now`.
    pub(super) fn look(&self, now: Instant) -> Look {
        let unread = self.unread() > 0 || !self.is_idle.load(Relaxed);
        let progress = self.given.load(Relaxed).wrapping_add(self.taken.load(Relaxed));
        let mut watched = self.watched.lock();
        if watched.progress != progress {
            (watched.progress, watched.since) = (progress, now);
        }
        let SendProgress { since, ended, .. } = *watched;
        let ending = ended.is_some_and(|(_, at)| now.saturating_duration_since(at) < ENDING);
        Look { unread, since, ended: ended.map(|(what, _)| what), ending }
    }

    /// Returns when it has to be over: at its deadline, or [`LATE`] after it was ended from outside if that is
    /// earlier.
    pub(super) fn deadline(&self) -> Instant {
        let ended_at = self.streaming.as_ref().and_then(|streaming| streaming.ended_at.as_ref()?.get());
        ended_at.map_or(self.deadline, |at| self.deadline.min(*at + LATE))
    }

    /// Resets its stream. In HTTP/1.1, where a connection carries one response at a time, closes the connection.
    pub(super) fn end(&self, now: Instant) {
        let ended = match &self.stream {
            Some(stream) => {
                stream.reset();
                Ended::Stream
            }
            None => {
                self.connection.close();
                Ended::Connection
            }
        };
        self.watched.lock().ended = Some((ended, now));
    }

    /// Closes its connection: its stream was reset, and what HTTP holds of it is still there. Does nothing to a
    /// connection that others share.
    pub(super) fn close_connection(&self, now: Instant) {
        if !self.connection.is_shared() {
            self.connection.close();
            self.watched.lock().ended = Some((Ended::Connection, now));
        }
    }

    /// Drops what its body can make again.
    pub(super) fn release(&self) {
        if let Some(streaming) = &self.streaming {
            streaming.backlog.release();
        }
    }

    /// Gives back what is kept for initial events whose deadline has passed.
    pub(super) fn expire(&self, now: Instant) {
        if let Some(initial) = self.streaming.as_ref().and_then(|streaming| streaming.initial.as_ref()) {
            initial.expire(now);
        }
    }
}

impl Drop for ResponseAccount {
    fn drop(&mut self) {
        self.shared.free(self.base + self.frames.load(Relaxed));
        self.shared.leave(self.slot);
    }
}
