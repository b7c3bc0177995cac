//! The size limit of the store (etcd: --quota-backend-bytes), and which writes may use the reserve beyond it.
//!
//! ```text
//!   0 ── all ── quota ── shrinking, needed ── + 1/4 ── system's ── + 1/2 ── in no namespace ── + 5/8 ── deletes ── + 1
//! ```
//!
//! A delete takes space too, until compaction has removed what was deleted: the last three eighths of the reserve are
//! for deletes. The first quarter of the reserve is for writes that make their value smaller and for those that must
//! succeed although ordinary creates and growing writes are refused, the second quarter for writes of the system, and
//! an eighth for objects that are in no namespace ([`Priority`]). Pages that compaction has freed are reused; the file
//! does not shrink.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drydock_storage::backend::{BackendError, Priority, Result, Shortage};
use drydock_storage::retention::{Demand, Retention};
use parking_lot::Mutex;
use rusqlite::Connection;

use crate::error::translate;

/// The smallest and the largest reserve; between them it is a sixteenth of the quota.
const RESERVE: (u64, u64) = (1 << 20, 512 << 20);
/// What SQLite may use beyond the reserve, to move rows while it removes others.
const SLACK: u64 = 1 << 20;
/// Bytes that a row takes besides its key and value, including its index entry.
const ROW: u64 = 256;
/// Values up to this size are admitted like deletes: they are fencing tokens (drydock_storage::fence), without which
/// controllers could delete nothing.
const SMALL: usize = 128;

/// The limits of one store. Its size is that of the pages in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuotaLimits {
    quota: u64,
    reserve: u64,
    /// Size beyond which no delete is accepted. A store that was larger than its quota when it was opened gets a
    /// reserve above its size.
    deletes: u64,
}

/// How a write changes the size of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// A new key, or a value that is not smaller than the one before.
    Grows,
    /// A smaller value.
    Shrinks,
    /// A delete, or a very small value.
    Deletes,
}

impl Effect {
    /// Returns the effect of writing `value` in place of `present`.
    pub fn of(value: Option<&[u8]>, present: Option<&[u8]>) -> Self {
        let len = value.map_or(0, <[u8]>::len);
        match present {
            _ if len <= SMALL => Self::Deletes,
            Some(present) if len < present.len() => Self::Shrinks,
            _ => Self::Grows,
        }
    }
}

impl QuotaLimits {
    /// The limits of a store with this quota, which holds `used` bytes when it is opened.
    pub fn new(quota: u64, used: u64) -> Self {
        let reserve = (quota / 16).clamp(RESERVE.0, RESERVE.1);
        Self { quota, reserve, deletes: quota.max(used) + reserve }
    }

    /// Returns the largest size of the file in bytes.
    pub fn file(self) -> u64 {
        self.deletes + SLACK
    }

    /// Whether a store that holds `used` bytes accepts a write.
    fn takes(self, effect: Effect, priority: Priority, used: u64) -> bool {
        let most = match (effect, priority) {
            (Effect::Deletes, _) => self.deletes,
            (_, Priority::Cluster) => self.quota + self.reserve / 8 * 5,
            (_, Priority::System) => self.quota + self.reserve / 2,
            (Effect::Shrinks, _) | (_, Priority::Needed) => self.quota + self.reserve / 4,
            (Effect::Grows, Priority::Ordinary) => self.quota,
        };
        used < most
    }

    fn why(self, used: u64) -> String {
        format!(
            "objects and their history take {used} bytes, and --quota-backend-bytes is {}: delete objects, which makes \
             space within ten minutes, or raise it",
            self.quota
        )
    }

    /// Once the store has been full, ordinary creates and growing writes are accepted again below this size.
    /// Otherwise they would use each page that compaction frees at once, and readiness would flap between full and
    /// not full.
    fn resumes(self) -> u64 {
        self.quota - (self.reserve / 8).min(self.quota)
    }
}

/// What is known of the size of a store; clones share it.
#[derive(Clone, Default)]
pub(super) struct StoreQuota {
    limits: Option<QuotaLimits>,
    used: Arc<AtomicU64>,
    full: Arc<Mutex<Option<String>>>,
}

impl StoreQuota {
    /// Reads the size of a store when it is opened. Without `bytes` no write is refused.
    pub fn open(connection: &Connection, bytes: Option<u64>) -> Result<Self> {
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        let limits = QuotaLimits::new(bytes, used(connection)?);
        let pages = limits.file() / number(connection, "PRAGMA page_size")?.max(1);
        if pages < number(connection, "PRAGMA max_page_count")? {
            connection.execute_batch(&format!("PRAGMA max_page_count = {pages}")).map_err(translate)?;
        }
        let quota = Self { limits: Some(limits), ..Self::default() };
        quota.recheck(connection)?;
        Ok(quota)
    }

    /// Returns what is left if space is short.
    pub fn shortage(&self) -> Option<Shortage> {
        let limits = self.limits?;
        if self.full.lock().is_some() {
            return Some(Shortage::full(limits.reserve / 4));
        }
        Shortage::of(self.used.load(Ordering::Relaxed), limits.quota)
    }

    /// Returns how much history to discard, if any.
    pub fn demand(&self, retention: &Retention) -> Option<Demand> {
        self.limits.and_then(|limits| retention.demand(self.used.load(Ordering::Relaxed), limits.quota))
    }

    /// Returns why ordinary creates and growing writes are refused: from the time when the store becomes full until
    /// there is enough space again.
    pub fn why(&self) -> Option<String> {
        self.full.lock().clone()
    }

    /// Returns the space for the next transaction.
    pub fn transaction_space(&self, connection: &Connection) -> Result<TransactionSpace> {
        let Some(limits) = self.limits else { return Ok(TransactionSpace::default()) };
        let used = used(connection)?;
        self.note(limits, used);
        Ok(TransactionSpace { limits: Some(limits), used, closed: self.full.lock().is_some() })
    }

    /// Reads the size again, after a compaction.
    pub fn recheck(&self, connection: &Connection) -> Result<()> {
        self.transaction_space(connection).map(drop)
    }

    /// Records the size, and whether the store is full.
    fn note(&self, limits: QuotaLimits, used: u64) {
        self.used.store(used, Ordering::Relaxed);
        let mut full = self.full.lock();
        if full.is_none() && used >= limits.quota {
            let why = limits.why(used);
            tracing::error!(why, "the store is full: creates and growing writes are refused, deletes go on");
            *full = Some(why);
        } else if full.is_some() && used < limits.resumes() {
            tracing::info!(used, "the store has space again: all writes are taken");
            *full = None;
        }
    }
}

/// The space that one transaction may use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TransactionSpace {
    limits: Option<QuotaLimits>,
    used: u64,
    /// Whether ordinary creates and growing writes are refused until there is more space.
    closed: bool,
}

impl TransactionSpace {
    /// Takes space for a row with `bytes` of key and value. Fails if there is none for a write of this effect and
    /// priority.
    pub fn take(&mut self, effect: Effect, priority: Priority, bytes: usize) -> Result<()> {
        let Some(limits) = self.limits else { return Ok(()) };
        let stands_back = self.closed && (effect, priority) == (Effect::Grows, Priority::Ordinary);
        if stands_back || !limits.takes(effect, priority, self.used) {
            return Err(BackendError::NoSpace(limits.why(self.used)));
        }
        self.used += bytes as u64 + ROW;
        Ok(())
    }
}

/// Returns the bytes of the pages in use.
fn used(connection: &Connection) -> Result<u64> {
    let pages = number(connection, "PRAGMA page_count")?;
    let in_use = pages.saturating_sub(number(connection, "PRAGMA freelist_count")?);
    Ok(in_use * number(connection, "PRAGMA page_size")?)
}

fn number(connection: &Connection, pragma: &str) -> Result<u64> {
    let mut statement = connection.prepare_cached(pragma).map_err(translate)?;
    statement.query_row([], |row| row.get(0)).map_err(translate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn each_part_of_the_reserve_is_kept_from_those_before_it() {
        use Effect::{Deletes, Grows, Shrinks};
        use Priority::{Cluster, Needed, Ordinary, System};
        let limits = QuotaLimits::new(64 * MIB, 0);
        let all = [
            (Grows, Ordinary),
            (Shrinks, Ordinary),
            (Grows, Needed),
            (Grows, System),
            (Grows, Cluster),
            (Deletes, Ordinary),
        ];
        let takes = |used: u64| all.map(|(effect, priority)| limits.takes(effect, priority, used));
        assert_eq!(takes(64 * MIB - 1), [true; 6]);
        assert_eq!(takes(64 * MIB), [false, true, true, true, true, true]);
        assert_eq!(takes(65 * MIB), [false, false, false, true, true, true]);
        assert_eq!(takes(66 * MIB), [false, false, false, false, true, true]);
        assert_eq!(takes(66 * MIB + MIB / 2), [false, false, false, false, false, true]);
        assert_eq!(takes(68 * MIB), [false; 6]);
    }

    #[test]
    fn a_store_that_was_larger_already_can_still_be_emptied() {
        let limits = QuotaLimits::new(64 * MIB, 500 * MIB);
        let takes = |effect| limits.takes(effect, Priority::Cluster, 500 * MIB);
        assert!(takes(Effect::Deletes) && !takes(Effect::Shrinks));
        assert!(limits.file() > 500 * MIB);
    }

    #[test]
    fn it_is_full_from_the_quota_until_well_below_it() {
        let limits = QuotaLimits::new(64 * MIB, 0);
        let quota = StoreQuota { limits: Some(limits), ..StoreQuota::default() };
        for (used, full) in [(64 * MIB - 1, false), (64 * MIB, true), (64 * MIB - 1, true), (63 * MIB, false)]
        {
            quota.note(limits, used);
            assert_eq!(quota.why().is_some(), full, "{used}");
        }
    }
}
