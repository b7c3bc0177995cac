//! How large the store may grow (etcd: --quota-backend-bytes), and who may use what is left when it has.
//!
//! ```text
//!   0 ──── all writes ──── quota ── no creates ── + 1/4 ── no growing writes ── + 1/2 ── deletes alone ── + reserve
//! ```
//!
//! A delete takes space too, until compaction has forgotten what was deleted: so the last half of the reserve is kept for
//! deletes, and what shrinks an object, which ends with its removal, has a quarter that no create and no growing write can
//! use up. Pages that compaction has freed are used again; the file does not become smaller.

use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;

use super::error::translate;
use crate::backend::{BackendError, Result};

/// The least reserve, and the greatest: a sixteenth of the quota between them.
const RESERVE: (u64, u64) = (1 << 20, 512 << 20);
/// What SQLite may use beyond the reserve, to move rows while it removes some.
const SLACK: u64 = 1 << 20;
/// Bytes that a row takes beside its key and value, with its place in the index.
const ROW: u64 = 256;
/// A value of at most so many bytes is no object: it counts as little as a delete. A writer's term (fence.rs) is one, and
/// without it controllers could delete nothing.
const SMALL: usize = 128;

/// The limits of one store. What it holds is the size of its pages that are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    quota: u64,
    reserve: u64,
    /// Beyond which no delete is taken: a store that was larger than its quota when it was opened has a reserve of its own.
    deletes: u64,
}

/// What a write does to the size of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// A new key.
    Creates,
    /// A value that is no smaller than the one before.
    Grows,
    /// A smaller value.
    Shrinks,
    /// No value, or hardly one.
    Deletes,
}

impl Effect {
    /// Of a write of `value` in place of `present`.
    pub fn of(value: Option<&[u8]>, present: Option<&[u8]>) -> Self {
        let len = value.map_or(0, <[u8]>::len);
        match present {
            _ if len <= SMALL => Self::Deletes,
            None => Self::Creates,
            Some(present) if len >= present.len() => Self::Grows,
            Some(_) => Self::Shrinks,
        }
    }
}

impl Limits {
    /// The limits of a store with this quota, which holds `used` bytes when it is opened.
    pub fn new(quota: u64, used: u64) -> Self {
        let reserve = (quota / 16).clamp(RESERVE.0, RESERVE.1);
        Self { quota, reserve, deletes: quota.max(used) + reserve }
    }

    /// Bytes that the file may have in all.
    pub fn file(self) -> u64 {
        self.deletes + SLACK
    }

    /// Whether a store that holds `used` bytes takes a write.
    fn takes(self, effect: Effect, used: u64) -> bool {
        let most = match effect {
            Effect::Creates => self.quota,
            Effect::Grows => self.quota + self.reserve / 4,
            Effect::Shrinks => self.quota + self.reserve / 2,
            Effect::Deletes => self.deletes,
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

    /// Once it has been full, creates are taken again below this: else each page that compaction frees would be written to
    /// at once, and whoever looks would see it full and not full by turns.
    fn resumes(self) -> u64 {
        self.quota - (self.reserve / 8).min(self.quota)
    }
}

/// What is known of the size of a store; those who ask have a clone.
#[derive(Clone, Default)]
pub(super) struct Quota {
    limits: Option<Limits>,
    full: Arc<Mutex<Option<String>>>,
}

impl Quota {
    /// Of a store that is opened; without `bytes` nothing is refused.
    pub fn open(connection: &Connection, bytes: Option<u64>) -> Result<Self> {
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        let limits = Limits::new(bytes, used(connection)?);
        let pages = limits.file() / number(connection, "PRAGMA page_size")?.max(1);
        if pages < number(connection, "PRAGMA max_page_count")? {
            connection.execute_batch(&format!("PRAGMA max_page_count = {pages}")).map_err(translate)?;
        }
        Ok(Self { limits: Some(limits), full: Arc::default() })
    }

    /// Why creates are refused, from the first that was until there is space again.
    pub fn why(&self) -> Option<String> {
        self.full.lock().clone()
    }

    /// The room of the next transaction.
    pub fn room(&self, connection: &Connection) -> Result<Room> {
        let Some(limits) = self.limits else { return Ok(Room::default()) };
        let used = used(connection)?;
        self.look(limits, used);
        Ok(Room { limits: Some(limits), used, closed: self.full.lock().is_some() })
    }

    /// Looks whether there is space again, after a compaction, if there was none.
    pub fn recheck(&self, connection: &Connection) -> Result<()> {
        match self.limits {
            Some(limits) if self.full.lock().is_some() => {
                used(connection).map(|used| self.look(limits, used))
            }
            _ => Ok(()),
        }
    }

    fn look(&self, limits: Limits, used: u64) {
        let mut full = self.full.lock();
        if full.is_none() && used >= limits.quota {
            let why = limits.why(used);
            tracing::error!(why, "the store is full: creates are refused, deletes go on");
            *full = Some(why);
        } else if full.is_some() && used < limits.resumes() {
            tracing::info!(used, "the store has space again: all writes are taken");
            *full = None;
        }
    }
}

/// What one transaction may write.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    limits: Option<Limits>,
    used: u64,
    /// Creates are refused until there is more space.
    closed: bool,
}

impl Room {
    /// Takes room for a row of `bytes` of key and value, or says why there is none.
    pub fn take(&mut self, effect: Effect, bytes: usize) -> Result<()> {
        let Some(limits) = self.limits else { return Ok(()) };
        if (self.closed && effect == Effect::Creates) || !limits.takes(effect, self.used) {
            return Err(BackendError::NoSpace(limits.why(self.used)));
        }
        self.used += bytes as u64 + ROW;
        Ok(())
    }
}

/// Bytes of the pages that are in use.
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
    fn each_effect_has_a_part_of_the_reserve_that_those_before_it_cannot_use_up() {
        use Effect::{Creates, Deletes, Grows, Shrinks};
        let limits = Limits::new(64 * MIB, 0);
        let takes = |used: u64| [Creates, Grows, Shrinks, Deletes].map(|effect| limits.takes(effect, used));
        assert_eq!(takes(64 * MIB - 1), [true; 4]);
        assert_eq!(takes(64 * MIB), [false, true, true, true]);
        assert_eq!(takes(65 * MIB), [false, false, true, true]);
        assert_eq!(takes(66 * MIB), [false, false, false, true]);
        assert_eq!(takes(68 * MIB), [false; 4]);
    }

    #[test]
    fn a_store_that_was_larger_already_can_still_be_emptied() {
        let limits = Limits::new(64 * MIB, 500 * MIB);
        assert!(limits.takes(Effect::Deletes, 500 * MIB) && !limits.takes(Effect::Shrinks, 500 * MIB));
        assert!(limits.file() > 500 * MIB);
    }

    #[test]
    fn it_is_full_from_the_quota_until_well_below_it() {
        let limits = Limits::new(64 * MIB, 0);
        let quota = Quota { limits: Some(limits), full: Arc::default() };
        for (used, full) in [(64 * MIB - 1, false), (64 * MIB, true), (64 * MIB - 1, true), (63 * MIB, false)]
        {
            quota.look(limits, used);
            assert_eq!(quota.why().is_some(), full, "{used}");
        }
    }
}
