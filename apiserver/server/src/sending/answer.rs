//! One open answer: what it holds, how it gets on, and how it is ended from outside.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::task::Context;
use std::time::{Duration, Instant};

use futures::future::AbortHandle;
use futures::task::AtomicWaker;
use parking_lot::Mutex;

use super::ledger::Shared;
use super::{Backlog, Connection, stream};
use crate::user::User;

/// What an open answer costs whatever it holds: its stream, its task, its head, a watch's place among the sleepers, and
/// a frame of at most [`SMALL`] bytes.
pub(super) const BASE: usize = 6 * 1024;
/// Frames of up to this size are within [`BASE`]. It is also the most that is left with HTTP once the task of a stream
/// has ended, where nothing but the end of the connection takes it away.
pub(super) const SMALL: usize = 4 * 1024;
/// Time in which what was ended lets go of what it holds.
const ENDING: Duration = Duration::from_secs(1);

/// An open answer and what it keeps until it has been sent: its seat, for one.
pub(super) struct Answer<G> {
    pub(super) record: Record,
    pub(super) guard: Mutex<Option<G>>,
}

/// An open answer, whatever it keeps.
pub(super) trait Open: Send + Sync {
    fn record(&self) -> &Record;
    /// Gives back what it keeps: its time is up, and the transport may never take the rest.
    fn give_back(&self);
}

impl<G: Send> Open for Answer<G> {
    fn record(&self) -> &Record {
        &self.record
    }

    fn give_back(&self) {
        // Dropped without the lock.
        let _guard = self.guard.lock().take();
    }
}

/// The account of an open answer.
pub(super) struct Record {
    /// Who asked, where that is known.
    pub(super) user: Option<Arc<User>>,
    pub(super) connection: Arc<Connection>,
    pub(super) deadline: Instant,
    /// What its body holds itself.
    backlog: Option<Arc<dyn Backlog>>,
    stream: Option<AbortHandle>,
    shared: Arc<Shared>,
    slot: usize,
    /// Bytes of frames larger than [`SMALL`], and those of them whose frame is gone.
    charged: AtomicUsize,
    freed: AtomicUsize,
    /// Bytes given to the transport, and those of them that it has taken.
    given: AtomicU64,
    taken: AtomicU64,
    /// Whether the body waits for the transport to take what it was given.
    waits: AtomicBool,
    body: AtomicWaker,
    watched: Mutex<Watched>,
}

/// How an answer gets on, as seen by the sweeper alone.
#[derive(Clone, Copy)]
struct Watched {
    taken: u64,
    since: Instant,
    ended: Option<(Ended, Instant)>,
}

/// What has been ended for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Stream,
    Connection,
}

/// How an answer gets on.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// Whether the transport has not taken everything that it was given.
    pub(super) unread: bool,
    /// Since when it has taken nothing.
    pub(super) since: Instant,
    /// What has been ended for it.
    pub(super) ended: Option<Ended>,
    /// Whether that was just now: what it holds is about to be freed.
    pub(super) ending: bool,
}

impl Record {
    /// The account of an answer that is sent on `connection` by the task that calls this.
    pub(super) fn open(
        (shared, slot): (Arc<Shared>, usize),
        (user, connection): (Option<Arc<User>>, Arc<Connection>),
        deadline: Instant,
        backlog: Option<Arc<dyn Backlog>>,
    ) -> Self {
        shared.charge(BASE);
        Self {
            user,
            connection,
            deadline,
            backlog,
            stream: stream::current(),
            shared,
            slot,
            charged: AtomicUsize::new(0),
            freed: AtomicUsize::new(0),
            given: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            waits: AtomicBool::new(false),
            body: AtomicWaker::new(),
            watched: Mutex::new(Watched { taken: 0, since: Instant::now(), ended: None }),
        }
    }

    /// A frame of so many bytes is held; returns what [`Self::took`] frees with its last piece.
    pub(super) fn charge(&self, frame: usize) -> usize {
        if frame <= SMALL {
            return 0;
        }
        self.charged.fetch_add(frame, Relaxed);
        self.shared.charge(frame);
        frame
    }

    /// The transport is given so many bytes.
    pub(super) fn give(&self, bytes: usize) {
        self.given.fetch_add(bytes as u64, SeqCst);
        self.shared.arm();
    }

    /// The transport has taken so many bytes, or dropped them, and that frees so many.
    pub(super) fn took(&self, bytes: usize, frees: usize) {
        self.taken.fetch_add(bytes as u64, SeqCst);
        if frees > 0 {
            self.freed.fetch_add(frees, Relaxed);
            self.shared.free(frees);
        }
        if self.waits.load(SeqCst) {
            self.body.wake();
        }
    }

    /// Whether so little is unread that the task of the stream may end; if not, it is woken when something was taken.
    pub(super) fn is_nearly_read(&self, context: &Context<'_>) -> bool {
        if self.unread() <= SMALL as u64 {
            return true;
        }
        self.body.register(context.waker());
        self.waits.store(true, SeqCst);
        // In this order: what was taken before the waker was there is seen now.
        self.unread() <= SMALL as u64
    }

    /// Bytes that the transport was given and has not taken.
    pub(super) fn unread(&self) -> u64 {
        let taken = self.taken.load(SeqCst);
        self.given.load(SeqCst).saturating_sub(taken)
    }

    /// Everything that it holds.
    pub(super) fn bytes(&self) -> usize {
        let freed = self.freed.load(Relaxed);
        let frames = self.charged.load(Relaxed).saturating_sub(freed);
        let backlog = self.backlog.as_ref().map_or(0, |backlog| backlog.bytes());
        BASE + frames.saturating_add(backlog)
    }

    /// Looks how it gets on.
    pub(super) fn look(&self, now: Instant) -> Look {
        let (unread, taken) = (self.unread() > 0, self.taken.load(Relaxed));
        let mut watched = self.watched.lock();
        if watched.taken != taken {
            (watched.taken, watched.since) = (taken, now);
        }
        let Watched { since, ended, .. } = *watched;
        let ending = ended.is_some_and(|(_, at)| now.saturating_duration_since(at) < ENDING);
        Look { unread, since, ended: ended.map(|(what, _)| what), ending }
    }

    /// Ends its stream; its connection where it is the only one on it, or where its stream has been ended before.
    pub(super) fn end(&self, now: Instant) {
        let mut watched = self.watched.lock();
        let ended = match (&self.stream, watched.ended) {
            (Some(stream), None) => {
                stream.abort();
                Ended::Stream
            }
            _ => {
                self.connection.close();
                Ended::Connection
            }
        };
        watched.ended = Some((ended, now));
    }

    /// Lets go of what its body can make again.
    pub(super) fn let_go(&self) {
        if let Some(backlog) = &self.backlog {
            backlog.let_go();
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let frames = self.charged.load(Relaxed).saturating_sub(self.freed.load(Relaxed));
        self.shared.free(BASE + frames);
        self.shared.leave(self.slot);
    }
}
