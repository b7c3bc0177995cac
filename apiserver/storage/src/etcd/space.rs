//! How much of etcd's space is used, and history that is given up before its time where it runs short.
//!
//! An etcd whose file has grown to its quota refuses every write but deletes until somebody defragments it and disarms its
//! alarm (etcd.io: operations guide, space quota). Compaction makes room in the file and never a smaller one, so history has to go
//! before. etcd tells no size by itself: it is asked after each part of the quota that this server has written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::requests::Requests;
use crate::backend::{BackendError, Priority, Result, Revision, Write};
use crate::retention::{Mark, Marks, Retention, history_room};

/// Of an etcd before 3.6, which does not tell its quota (etcd: server/storage/quota.go, DefaultQuotaBytes).
const USUAL_QUOTA: u64 = 2 << 30;
/// The part of the quota after whose writing the size is asked for.
const LOOK: u64 = 64;
/// The part of the quota that ordinary creates leave to others.
const RESERVE: u64 = 8;
/// A value up to this size is no object: a fencing token.
const SMALL: usize = 128;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// What is known; all clones know the same.
#[derive(Clone)]
pub(super) struct Space {
    known: Arc<Mutex<Known>>,
    /// It is time to look again.
    look: Arc<Notify>,
    retention: Retention,
}

struct Known {
    size: Size,
    marks: Marks,
    /// Bytes that this server has written, and had when it looked.
    written: u64,
    looked_at: u64,
}

/// What a member of etcd tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Bytes that are in use.
    used: u64,
    /// Bytes beyond which it takes no writes.
    quota: u64,
}

impl Size {
    /// Of numbers as etcd gives them; a quota of 0 is unknown.
    pub fn new(used: i64, quota: i64) -> Self {
        let quota = if quota > 0 { quota.unsigned_abs() } else { USUAL_QUOTA };
        Self { used: used.max(0).unsigned_abs(), quota }
    }

    fn is_full(self) -> bool {
        self.used >= self.quota - self.quota / RESERVE
    }
}

impl Space {
    pub fn new(retention: Retention) -> Self {
        let marks = Marks::new(&retention, Instant::now(), Revision(0));
        let known = Known { size: Size::new(0, 0), marks, written: 0, looked_at: 0 };
        Self { known: Arc::new(Mutex::new(known)), look: Arc::default(), retention }
    }

    /// A write of so many bytes was made at `revision`.
    pub fn wrote(&self, bytes: usize, revision: Revision) {
        let known = &mut *self.known.lock();
        known.written += bytes as u64;
        known.marks.note(Instant::now(), revision, known.written);
        if known.written - known.looked_at >= known.size.quota / LOOK {
            known.looked_at = known.written;
            self.look.notify_one();
        }
    }

    /// etcd refused a write for want of space.
    pub fn exceeded(&self) {
        self.look.notify_one();
    }

    /// Refuses a write that would use what is left for others: an ordinary create.
    pub fn check(&self, write: &Write) -> Result<()> {
        let creates =
            write.expected.is_none() && write.value.as_ref().is_some_and(|value| value.len() > SMALL);
        if write.priority != Priority::Ordinary || !creates {
            return Ok(());
        }
        self.why().map_or(Ok(()), |why| {
            self.look.notify_one();
            Err(BackendError::NoSpace(why))
        })
    }

    /// Why ordinary creates are refused.
    pub fn why(&self) -> Option<String> {
        let size @ Size { used, quota } = self.known.lock().size;
        size.is_full().then(|| {
            format!(
                "etcd uses {used} bytes, and its --quota-backend-bytes is {quota}: delete objects, let etcd compact, or \
                 raise it"
            )
        })
    }

    /// [`crate::backend::Backend::history_room`].
    pub fn history_room(&self) -> Option<u64> {
        let Size { used, quota } = self.known.lock().size;
        history_room(used, quota)
    }

    /// Looks after the space; for ever.
    pub async fn keep(&self, requests: &Requests) {
        loop {
            match requests.members().size().await {
                Ok(size) => self.known.lock().size = size,
                Err(error) => tracing::debug!(%error, "etcd does not tell its size"),
            }
            let gave_up = self.give_up(requests).await;
            tokio::time::sleep(PAUSE).await;
            if !gave_up {
                self.until_due().await;
            }
        }
    }

    /// Whether history was given up.
    async fn give_up(&self, requests: &Requests) -> bool {
        let Some(mark) = self.due() else { return false };
        match requests.compact(mark.revision).await {
            Ok(()) | Err(BackendError::Compacted { .. }) => {
                self.known.lock().marks.forgot(mark);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "history is not given up yet, though etcd runs short of space");
                false
            }
        }
    }

    fn due(&self) -> Option<Mark> {
        let known = self.known.lock();
        let demand = self.retention.demand(known.size.used, known.size.quota)?;
        known.marks.due(Instant::now(), demand)
    }

    /// Waits until something is to be given up, or it is time to look.
    async fn until_due(&self) {
        let next = {
            let known = self.known.lock();
            let demand = self.retention.demand(known.size.used, known.size.quota);
            demand.and_then(|demand| known.marks.next(demand))
        };
        let due = async {
            match next {
                Some(next) => tokio::time::sleep_until(next.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = self.look.notified() => {}
        }
    }
}
