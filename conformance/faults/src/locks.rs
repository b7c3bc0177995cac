//! The locks of a file and of the memory beside it, among the connections of one process
//! (sqlite.org/lockingv3.html; sqlite.org/walformat.html, 2.3).

use std::collections::HashMap;

/// Slots of the memory's locks.
const SLOTS: usize = 8;

/// No lock; the others follow in SQLite's order.
pub const NONE: i32 = 0;
const SHARED: i32 = 1;
const RESERVED: i32 = 2;
const PENDING: i32 = 3;
const EXCLUSIVE: i32 = 4;

/// Who holds what.
#[derive(Default)]
pub struct Locks {
    levels: HashMap<u64, i32>,
    slots: [LockSlot; SLOTS],
}

#[derive(Default)]
struct LockSlot {
    readers: Vec<u64>,
    writer: Option<u64>,
}

impl Locks {
    /// Raises a connection's lock; `false` if another one's is in the way.
    pub fn raise(&mut self, who: u64, to: i32) -> bool {
        let others = self.levels.iter().filter(|(other, _)| **other != who);
        let highest = others.map(|(_, level)| *level).max().unwrap_or(NONE);
        let own = self.levels.entry(who).or_insert(NONE);
        let free = match to {
            SHARED => highest < PENDING,
            RESERVED | PENDING => highest < RESERVED,
            _ => highest == NONE,
        };
        if free {
            *own = (*own).max(to);
        } else if to == EXCLUSIVE && highest == SHARED {
            // Readers may end, and no new one begins.
            *own = PENDING;
        }
        free
    }

    /// Lowers it.
    pub fn lower(&mut self, who: u64, to: i32) {
        let own = self.levels.entry(who).or_insert(NONE);
        *own = (*own).min(to);
        if to == NONE {
            self.levels.remove(&who);
        }
    }

    /// Whether a connection is about to write.
    pub fn reserved(&self) -> bool {
        self.levels.values().any(|level| *level >= RESERVED)
    }

    /// Locks slots of the memory; `false` if another one's lock is in the way.
    pub fn lock_slots(&mut self, who: u64, from: usize, count: usize, exclusive: bool) -> bool {
        let Some(slots) = self.slots.get_mut(from..from + count) else { return false };
        let free = |slot: &LockSlot| {
            slot.writer.is_none_or(|writer| writer == who)
                && (!exclusive || slot.readers.iter().all(|reader| *reader == who))
        };
        if !slots.iter().all(free) {
            return false;
        }
        for slot in slots {
            match exclusive {
                true => slot.writer = Some(who),
                false => slot.readers.push(who),
            }
        }
        true
    }

    /// Unlocks them.
    pub fn unlock_slots(&mut self, who: u64, from: usize, count: usize) {
        for slot in self.slots.iter_mut().skip(from).take(count) {
            slot.readers.retain(|reader| *reader != who);
            slot.writer = slot.writer.filter(|writer| *writer != who);
        }
    }

    /// Forgets a connection.
    pub fn forget(&mut self, who: u64) {
        self.lower(who, NONE);
        self.unlock_slots(who, 0, SLOTS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writes_and_readers_keep_it_from_the_file() {
        let mut locks = Locks::default();
        assert!(locks.raise(1, SHARED) && locks.raise(2, SHARED) && locks.raise(1, RESERVED));
        assert!(!locks.raise(2, RESERVED) && locks.reserved());
        assert!(!locks.raise(1, EXCLUSIVE) && !locks.raise(3, SHARED), "no new reader");
        locks.lower(2, NONE);
        assert!(locks.raise(1, EXCLUSIVE));
        locks.forget(1);
        assert!(locks.raise(3, SHARED) && !locks.reserved());
    }

    #[test]
    fn slots_are_shared_or_exclusive() {
        let mut locks = Locks::default();
        assert!(locks.lock_slots(1, 3, 1, false) && locks.lock_slots(2, 3, 1, false));
        assert!(!locks.lock_slots(1, 3, 1, true));
        locks.unlock_slots(2, 3, 1);
        assert!(locks.lock_slots(3, 0, 3, true) && !locks.lock_slots(1, 2, 1, false));
        assert!(!locks.lock_slots(1, 7, 2, true), "there are eight");
    }
}
