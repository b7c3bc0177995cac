//! One file: what the system shows of it, what is durable, and what was written since.

use std::fs::File;
use std::io::Result;
use std::os::unix::fs::{FileExt, MetadataExt};

use rand::RngExt;
use rand::rngs::StdRng;

use crate::locks::Locks;
use crate::memory::Region;

/// What a disk writes at once, or not at all.
const SECTOR: usize = 512;

/// A file that has been opened.
pub struct Inode {
    /// What the system shows.
    pub shown: File,
    durable: Vec<u8>,
    pending: Vec<UnsyncedChange>,
    /// Locks of its connections.
    pub locks: Locks,
    /// Memory that they share.
    pub memory: Vec<Region>,
    /// How many connections have it open.
    pub users: usize,
}

enum UnsyncedChange {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

impl Inode {
    /// A file as it is: durable.
    pub fn new(shown: File) -> Result<Self> {
        let mut durable = vec![0; usize::try_from(shown.metadata()?.len()).unwrap_or(0)];
        shown.read_exact_at(&mut durable, 0)?;
        let (locks, memory) = (Locks::default(), Vec::new());
        Ok(Self { shown, durable, pending: Vec::new(), locks, memory, users: 0 })
    }

    /// Whether it is still the file of that name.
    pub fn is(&self, other: &File) -> bool {
        let id = |file: &File| file.metadata().map(|data| (data.dev(), data.ino())).ok();
        id(&self.shown) == id(other)
    }

    /// Whether the file still has a name, even if it is another one by now.
    pub fn has_name(&self) -> bool {
        self.shown.metadata().is_ok_and(|data| data.nlink() > 0)
    }

    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.shown.write_all_at(bytes, at)?;
        self.pending.push(UnsyncedChange::Write(at, bytes.to_vec()));
        Ok(())
    }

    pub fn truncate(&mut self, to: u64) -> Result<()> {
        self.shown.set_len(to)?;
        self.pending.push(UnsyncedChange::Truncate(to));
        Ok(())
    }

    /// All that was written is durable.
    pub fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.durable);
        }
    }

    /// A sync failed: part of it is durable; the system shows the rest, and will not write it again by itself.
    pub fn sync_badly(&mut self, chance: &mut StdRng) {
        for change in std::mem::take(&mut self.pending) {
            if chance.random() {
                change.apply(&mut self.durable);
            }
        }
    }

    /// A sync failed, and the system treats what it could not write as written.
    pub fn forget(&mut self) {
        self.pending.clear();
    }

    /// What is durable, if the file has a durable part at all.
    pub fn durable(&self) -> &[u8] {
        &self.durable
    }

    /// Loses the power: of what was not synced, nothing, everything, the first part or any part is left.
    pub fn lose_power(&mut self, chance: &mut StdRng) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let style = chance.random_range(0..4);
        let first = chance.random_range(0..=pending.len());
        for (at, change) in pending.into_iter().enumerate() {
            match style {
                0 => {}
                1 => change.apply(&mut self.durable),
                2 if at < first => change.apply(&mut self.durable),
                2 => {}
                _ => change.torn(chance).into_iter().for_each(|piece| piece.apply(&mut self.durable)),
            }
        }
        self.shown.set_len(0)?;
        self.shown.write_all_at(&self.durable, 0)
    }
}

impl UnsyncedChange {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Truncate(size) => to.resize(usize::try_from(*size).unwrap_or(0), 0),
            Self::Write(at, bytes) => {
                let at = usize::try_from(*at).unwrap_or(0);
                to.resize(to.len().max(at + bytes.len()), 0);
                to[at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
    }

    /// Any of its sectors.
    fn torn(self, chance: &mut StdRng) -> Vec<Self> {
        let whole = chance.random::<bool>();
        match self {
            _ if chance.random_range(0..3) == 0 => Vec::new(),
            Self::Write(at, bytes) if !whole => {
                let sectors = bytes.chunks(SECTOR).enumerate();
                let kept = sectors.filter(|_| chance.random::<bool>());
                kept.map(|(n, part)| Self::Write(at + (n * SECTOR) as u64, part.to_vec())).collect()
            }
            other => vec![other],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rand::SeedableRng;

    use super::*;

    /// What is found in a file of `AA`, of which the second letter was overwritten, in many losses of power.
    fn found(synced: bool) -> Vec<Vec<u8>> {
        let once = |seed| {
            let path = std::env::temp_dir().join(format!("drydock-node-{}-{synced}", std::process::id()));
            std::fs::write(&path, "AA").unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            let mut node = Inode::new(file).unwrap();
            node.write(1, b"B").unwrap();
            if synced {
                node.sync();
            }
            node.lose_power(&mut StdRng::seed_from_u64(seed)).unwrap();
            let found = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            found
        };
        (0..50).map(once).collect()
    }

    #[test]
    fn what_was_synced_is_there_and_what_was_not_may_be() {
        assert!(found(true).iter().all(|found| found == b"AB"));
        let unsure = found(false);
        assert!(unsure.iter().any(|found| found == b"AA") && unsure.iter().any(|found| found == b"AB"));
    }
}
