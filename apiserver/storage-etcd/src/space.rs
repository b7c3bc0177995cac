//! Tracks how much of etcd's space is used, and when history has to be discarded because it runs short
//! ([`crate::compactor`] does that).
//!
//! An etcd whose file has grown to its quota refuses every write but deletes until somebody defragments it and
//! disarms its alarm (etcd.io: operations guide, space quota). Compaction frees space within the file but never makes
//! the file smaller, so history has to be discarded before the file is full. etcd does not announce its size: this
//! server asks for it each time it has written a 64th of the quota, and counts what it has written since as used.

use std::sync::Arc;
use std::time::Instant;

use drydock_storage::backend::{BackendError, CompareAndSwap, Priority, Result, Revision, Shortage};
use drydock_storage::retention::{Retention, RevisionSample, RevisionTimes};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The quota of an etcd before 3.6, which does not report it (etcd: server/storage/quota.go, DefaultQuotaBytes).
const USUAL_QUOTA: u64 = 2 << 30;
/// The size is requested after each 1/SIZE_REQUEST_STEP of the quota that is written.
const SIZE_REQUEST_STEP: u64 = 64;
/// The last 1/RESERVE of the quota is kept from ordinary writes that do not make their value smaller.
const RESERVE: u64 = 8;
/// A value up to this size is a fencing token and no object.
const MAX_TOKEN: usize = 128;

/// What is known of the space; clones share it.
#[derive(Clone)]
pub(super) struct Space {
    state: Arc<Mutex<SpaceState>>,
    /// Notified when the size should be requested.
    request_size: Arc<Notify>,
    retention: Retention,
}

struct SpaceState {
    /// The size that was reported last.
    reported: DatabaseSize,
    /// Bytes that this server had written when it requested that size.
    written_at_report: u64,
    revision_times: RevisionTimes,
    /// Bytes that this server has written, now and when the size was last to be requested.
    written: u64,
    written_at_request: u64,
}

impl SpaceState {
    /// Bytes that this server has written since it requested the size that was reported last.
    fn written_since(&self) -> u64 {
        self.written - self.written_at_report
    }

    /// The size with what was written since: while a member is slow to report, writes go on.
    fn size(&self) -> DatabaseSize {
        let DatabaseSize { file, used, quota } = self.reported;
        let [file, used] = [file, used].map(|bytes| bytes.saturating_add(self.written_since()));
        DatabaseSize { file, used, quota }
    }
}

/// The size that a member of etcd reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatabaseSize {
    /// Bytes of its file, which never becomes smaller.
    file: u64,
    /// Bytes of the file that are in use.
    used: u64,
    /// Bytes of the file beyond which the member accepts no writes (etcd: server/storage/quota.go, Available).
    quota: u64,
}

impl DatabaseSize {
    /// Converts etcd's numbers; a quota of 0 is unknown.
    pub fn new(file: i64, used: i64, quota: i64) -> Self {
        let quota = if quota > 0 { quota.unsigned_abs() } else { USUAL_QUOTA };
        let [file, used] = [file, used].map(|bytes| bytes.max(0).unsigned_abs());
        Self { file: file.max(used), used, quota }
    }

    /// Whether a write of this priority is taken: needed writes have a quarter of the reserve, the system another
    /// one, and objects that are in no namespace a third one. The size is known to an eighth of the reserve.
    ///
    /// Of the free part of the file half counts as used: a large value needs free pages side by side, and makes the
    /// file larger where there are none.
    fn takes(self, priority: Priority) -> bool {
        let quarters = match priority {
            Priority::Ordinary => 4,
            Priority::Needed => 3,
            Priority::System => 2,
            Priority::Cluster => 1,
        };
        let kept = self.quota / RESERVE * quarters / 4;
        self.used + (self.file - self.used) / 2 < self.quota - kept
    }
}

impl Space {
    pub fn new(retention: Retention) -> Self {
        let revision_times = RevisionTimes::new(&retention, Instant::now(), Revision(0));
        let reported = DatabaseSize::new(0, 0, 0);
        let state =
            SpaceState { reported, written_at_report: 0, revision_times, written: 0, written_at_request: 0 };
        Self { state: Arc::new(Mutex::new(state)), request_size: Arc::default(), retention }
    }

    /// Records a write of so many bytes at `revision`.
    pub fn wrote(&self, bytes: usize, revision: Revision) {
        let state = &mut *self.state.lock();
        state.written += bytes as u64;
        state.revision_times.note(Instant::now(), revision, state.written);
        if state.written - state.written_at_request >= state.reported.quota / SIZE_REQUEST_STEP {
            state.written_at_request = state.written;
            self.request_size.notify_one();
        }
    }

    /// Records that etcd refused a write because it has no space.
    pub fn exceeded(&self) {
        self.request_size.notify_one();
    }

    /// Fails for a write that has no part in the rest of the space. Deletes always have one.
    pub fn check(&self, write: &CompareAndSwap) -> Result<()> {
        let is_object = write.value.as_ref().is_some_and(|value| value.len() > MAX_TOKEN);
        let why = is_object.then(|| self.why_of(write.priority)).flatten();
        why.map_or(Ok(()), |why| {
            self.request_size.notify_one();
            Err(BackendError::NoSpace(why))
        })
    }

    /// Returns why ordinary writes are refused; `None` if they are accepted.
    pub fn why(&self) -> Option<String> {
        self.why_of(Priority::Ordinary)
    }

    fn why_of(&self, priority: Priority) -> Option<String> {
        let state = self.state.lock();
        let DatabaseSize { file, used, quota } = state.reported;
        (!state.size().takes(priority)).then(|| {
            let since = match state.written_since() {
                0 => String::new(),
                written => format!(" at its last report, {written} bytes were written since"),
            };
            format!(
                "etcd uses {used} bytes of a file of {file}{since}, and its --quota-backend-bytes is {quota}: delete objects, \
                 let etcd compact and defragment, or raise it"
            )
        })
    }

    /// See [`drydock_storage::backend::Backend::shortage`].
    pub fn shortage(&self) -> Option<Shortage> {
        let size = self.state.lock().size();
        if size.takes(Priority::Ordinary) {
            Shortage::of(size.used, size.quota)
        } else {
            Some(Shortage::full(size.quota / RESERVE / 4))
        }
    }

    /// Returns how many bytes this server has written.
    pub fn written(&self) -> u64 {
        self.state.lock().written
    }

    /// Records the size that a member reports. This server had written so many bytes when the size was requested.
    pub fn set_size(&self, size: DatabaseSize, written: u64) {
        let state = &mut *self.state.lock();
        (state.reported, state.written_at_report) = (size, written);
    }

    /// Records that the history up to `sample` was discarded.
    pub fn compacted(&self, sample: RevisionSample) {
        self.state.lock().revision_times.forgot(sample);
    }

    /// Returns up to where history has to be discarded now, because space is short.
    pub fn due(&self) -> Option<RevisionSample> {
        let state = self.state.lock();
        let DatabaseSize { used, quota, .. } = state.size();
        let demand = self.retention.demand(used, quota)?;
        state.revision_times.due(Instant::now(), demand)
    }

    /// Waits until a compaction is due or the size should be requested.
    pub async fn until_due(&self) {
        let next = {
            let state = self.state.lock();
            let DatabaseSize { used, quota, .. } = state.size();
            let demand = self.retention.demand(used, quota);
            demand.and_then(|demand| state.revision_times.next(demand))
        };
        let due = async {
            match next {
                Some(next) => tokio::time::sleep_until(next.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = self.request_size.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow member reported its size so late that creates had filled etcd to its quota: then it took no write at all.
    #[test]
    fn creates_end_at_the_reserve_while_no_size_is_reported() {
        let space = Space::new(Retention::default());
        space.set_size(DatabaseSize::new(40, 40, 80), 0);
        space.wrote(29, Revision(1));
        assert_eq!(space.why(), None);
        let asked = space.written();
        space.wrote(1, Revision(2));
        assert!(space.why().is_some_and(|why| {
            why.starts_with(
                "etcd uses 40 bytes of a file of 40 at its last report, 30 bytes were written since, and",
            )
        }));
        space.set_size(DatabaseSize::new(60, 60, 80), asked);
        assert_eq!(space.why(), None, "what was written before the request is in the report");
        space.wrote(9, Revision(3));
        assert!(space.why().is_some());
    }

    /// Free pages lay apart, so that large values made the file larger until etcd took no write at all.
    #[test]
    fn creates_end_before_a_file_with_holes_has_grown_to_the_quota() {
        let is_full = |file, used| !DatabaseSize::new(file, used, 80).takes(Priority::Ordinary);
        assert!(is_full(78, 62) && !is_full(77, 62));
        assert!(!is_full(79, 10), "a file that was large once has room");
        assert!(is_full(70, 70) && !is_full(69, 69));
    }

    const MIB: u64 = 1 << 20;

    fn takes(used: u64, priority: Priority, expected: Option<Revision>, bytes: usize) -> bool {
        let space = Space::new(Retention::default());
        space.set_size(DatabaseSize { file: used, used, quota: 64 * MIB }, 0);
        let value = (bytes > 0).then(|| vec![b'x'; bytes].into());
        let write = CompareAndSwap { key: "/a".to_owned(), expected, value, guard: None, priority };
        space.check(&write).is_ok()
    }

    #[test]
    fn each_part_of_the_reserve_is_kept_from_those_before_it() {
        use Priority::{Cluster, Needed, Ordinary, System};
        for (used, taken) in [(55, 4), (56, 3), (58, 2), (60, 1), (62, 0)] {
            for (at, priority) in [Cluster, System, Needed, Ordinary].into_iter().enumerate() {
                assert_eq!(takes(used * MIB, priority, None, 1000), at < taken, "{used} {priority:?}");
            }
        }
    }

    /// Regression: history could take an eighth of the quota, four times what is left to needed writes.
    #[test]
    fn history_takes_a_part_of_what_is_left_to_needed_writes() {
        let shortage = |used: u64| {
            let space = Space::new(Retention::default());
            space.set_size(DatabaseSize { file: used * MIB, used: used * MIB, quota: 64 * MIB }, 0);
            space.shortage()
        };
        assert_eq!(shortage(31), None);
        assert_eq!(shortage(55), Some(Shortage { history: 8 * MIB, is_full: false }));
        assert_eq!(shortage(56), Some(Shortage { history: MIB / 2, is_full: true }));
    }

    /// Regression: only creates were refused, so that updates grew until etcd refused every write.
    #[test]
    fn updates_are_refused_too_and_tokens_and_deletes_are_not() {
        let at = Some(Revision(3));
        assert!(!takes(64 * MIB, Priority::Ordinary, at, 1000));
        assert!(takes(64 * MIB, Priority::Ordinary, at, 0));
        assert!(takes(64 * MIB, Priority::Ordinary, at, 20));
    }
}
