//! The one disk of this process.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rusqlite::ffi;

use crate::faults::Faults;
use crate::memory::RegionPool;
use crate::node::Inode;

/// How long the closing of files is waited for when the power goes.
const CLOSED_WITHIN: Duration = Duration::from_secs(300);

/// Called before each write and sync with what it does (`wal-write`, `db-sync`).
pub type DiskHook = Box<dyn Fn(&'static str) + Send + Sync>;

/// The disk.
#[derive(Default)]
pub struct Disk {
    state: Mutex<State>,
    /// Notified when a file was closed.
    closed: Condvar,
    hook: OnceLock<DiskHook>,
}

#[derive(Default)]
pub(crate) struct State {
    pub nodes: HashMap<PathBuf, Inode>,
    pub pool: RegionPool,
    /// Deleted files, which may be back after a loss of power: a deletion is durable with the next sync.
    removed: Vec<(PathBuf, Vec<u8>)>,
    faults: Faults,
    /// The file whose next sync fails.
    failing: Option<PathBuf>,
    chance: Option<StdRng>,
    /// Writes and syncs until the power goes.
    left: Option<u64>,
    dead: bool,
}

/// The disk of this process.
pub fn disk() -> &'static Disk {
    static DISK: OnceLock<Disk> = OnceLock::new();
    DISK.get_or_init(Disk::default)
}

impl Disk {
    /// Calls `hook` before each write and sync from now on.
    pub fn on_change(&self, hook: DiskHook) {
        let _ = self.hook.set(hook);
    }

    /// Lets the power go after `left` more writes and syncs, and things go wrong until then.
    pub fn arm(&self, seed: u64, left: u64, faults: Faults) {
        let mut state = self.state.lock();
        state.chance = Some(StdRng::seed_from_u64(seed));
        (state.left, state.faults) = (Some(left), faults);
    }

    /// Whether the power has gone.
    pub fn is_dead(&self) -> bool {
        self.state.lock().dead
    }

    /// No space is left from now on, or there is again.
    pub fn fill(&self, full: bool) {
        let mut state = self.state.lock();
        state.chance.get_or_insert_with(|| StdRng::seed_from_u64(0));
        state.faults = Faults { no_space: if full { 1000 } else { 0 }, ..Faults::default() };
    }

    /// Lets the next sync of this file fail. Nothing that it was to make durable ever becomes durable, though the
    /// system shows it.
    pub fn fail_sync(&self, path: &Path) {
        self.state.lock().failing = Some(path.to_owned());
    }

    /// Lets the power go now, and come back: files are as they are found then. Connections that are about to be closed
    /// are waited for: one that was still open would write to files that are no longer its own.
    pub fn power_cycle(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        let is_open = |state: &mut State| state.nodes.values().any(|node| node.users > 0);
        if self.closed.wait_while_for(&mut state, is_open, CLOSED_WITHIN).timed_out() {
            return Err(io::Error::other("somebody does not close a file"));
        }
        let state = &mut *state;
        let mut chance = state.chance.take().unwrap_or_else(|| StdRng::seed_from_u64(0));
        let mut nodes: Vec<_> = state.nodes.drain().collect();
        // In an order that is the same for a seed.
        nodes.sort_by(|one, other| one.0.cmp(&other.0));
        for (_, mut node) in nodes {
            state.pool.give(std::mem::take(&mut node.memory));
            if node.has_name() {
                node.lose_power(&mut chance)?;
            }
        }
        for (path, bytes) in state.removed.drain(..) {
            // The folder of an earlier store may be gone.
            if chance.random() && !path.exists() && path.parent().is_some_and(Path::is_dir) {
                fs::write(path, bytes)?;
            }
        }
        (state.left, state.faults, state.dead) = (None, Faults::default(), false);
        Ok(())
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn open(&self, path: &Path, create: bool) -> io::Result<()> {
        let mut state = self.state.lock();
        let options = File::options().read(true).write(true).create(create).mode(0o644).open(path)?;
        let known = state.nodes.iter().find(|(_, node)| node.is(&options)).map(|(path, _)| path.clone());
        // One that was renamed is the same file: what was not synced under its old name is not durable under the new.
        let node = match known.and_then(|known| state.nodes.remove(&known)) {
            Some(node) => node,
            None => Inode::new(options)?,
        };
        state.nodes.insert(path.to_owned(), node);
        if let Some(node) = state.nodes.get_mut(path) {
            node.users += 1;
        }
        Ok(())
    }

    /// Closes a connection. With the last one, the memory goes back to the pool, and the next connection makes it
    /// anew.
    pub(crate) fn close(&self, path: &Path, who: u64) {
        let mut state = self.state.lock();
        let State { nodes, pool, .. } = &mut *state;
        let Some(node) = nodes.get_mut(path) else { return };
        node.locks.forget(who);
        node.users = node.users.saturating_sub(1);
        self.closed.notify_all();
        if node.users == 0 {
            pool.give(std::mem::take(&mut node.memory));
        }
    }

    pub(crate) fn delete(&self, path: &Path, durably: bool) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.dead {
            return Err(io::Error::other("no power"));
        }
        fs::remove_file(path)?;
        if let Some(node) = state.nodes.remove(path)
            && !durably
        {
            state.removed.push((path.to_owned(), node.durable().to_vec()));
        }
        Ok(())
    }

    pub(crate) fn write(&self, path: &Path, at: u64, bytes: &[u8]) -> Result<(), i32> {
        self.announce(path, "write");
        let mut state = self.state.lock();
        let whole = state.power(ffi::SQLITE_IOERR_WRITE);
        let fault =
            [(state.faults.short_write, ffi::SQLITE_IOERR_WRITE), (state.faults.no_space, ffi::SQLITE_FULL)];
        let failed = fault.into_iter().find(|(share, _)| state.strikes(*share)).map(|(_, code)| code);
        let outcome = whole.and(failed.map_or(Ok(()), Err));
        let part = if outcome.is_ok() { bytes.len() } else { state.part(bytes.len()) };
        if whole.is_err() && !state.leaves_partial_write() {
            return outcome;
        }
        let node = state.nodes.get_mut(path).ok_or(ffi::SQLITE_IOERR_WRITE)?;
        node.write(at, &bytes[..part]).map_err(|_| ffi::SQLITE_IOERR_WRITE)?;
        outcome
    }

    pub(crate) fn truncate(&self, path: &Path, to: u64) -> Result<(), i32> {
        let mut state = self.state.lock();
        state.power(ffi::SQLITE_IOERR_TRUNCATE)?;
        let node = state.nodes.get_mut(path).ok_or(ffi::SQLITE_IOERR_TRUNCATE)?;
        node.truncate(to).map_err(|_| ffi::SQLITE_IOERR_TRUNCATE)
    }

    pub(crate) fn sync(&self, path: &Path) -> Result<(), i32> {
        self.announce(path, "sync");
        let mut state = self.state.lock();
        state.power(ffi::SQLITE_IOERR_FSYNC)?;
        let (lies, fails) = (state.faults.lying_sync, state.faults.bad_sync);
        if state.strikes(lies) {
            return Ok(());
        }
        let fails = state.strikes(fails);
        let State { nodes, chance, removed, failing, .. } = &mut *state;
        let node = nodes.get_mut(path).ok_or(ffi::SQLITE_IOERR_FSYNC)?;
        if failing.take_if(|failing| failing == path).is_some() {
            node.forget();
            return Err(ffi::SQLITE_IOERR_FSYNC);
        }
        match chance.as_mut().filter(|_| fails) {
            Some(chance) => {
                node.sync_badly(chance);
                Err(ffi::SQLITE_IOERR_FSYNC)
            }
            None => {
                node.sync();
                removed.clear();
                Ok(())
            }
        }
    }

    pub(crate) fn read(&self, path: &Path, at: u64, into: &mut [u8]) -> Result<usize, i32> {
        let state = self.state.lock();
        if state.dead {
            return Err(ffi::SQLITE_IOERR_READ);
        }
        let node = state.nodes.get(path).ok_or(ffi::SQLITE_IOERR_READ)?;
        let mut read = 0;
        while read < into.len() {
            match node.shown.read_at(&mut into[read..], at + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(_) => return Err(ffi::SQLITE_IOERR_READ),
            }
        }
        Ok(read)
    }

    fn announce(&self, path: &Path, what: &'static str) {
        if let Some(hook) = self.hook.get() {
            hook(point(path, what));
        }
    }
}

/// What a change of a file is called.
fn point(path: &Path, what: &'static str) -> &'static str {
    let name = path.to_string_lossy();
    match (name.ends_with("-wal"), name.ends_with(".part"), what) {
        (true, _, "write") => "wal-write",
        (true, _, _) => "wal-sync",
        (_, true, "write") => "backup-write",
        (_, true, _) => "backup-sync",
        (_, _, "write") if name.ends_with(".db") => "checkpoint-write",
        _ if name.ends_with(".db") => "checkpoint-sync",
        _ => "other",
    }
}

impl State {
    /// Counts down to the loss of power; the change at which it happens fails.
    fn power(&mut self, code: i32) -> Result<(), i32> {
        match &mut self.left {
            _ if self.dead => return Err(code),
            Some(0) => self.dead = true,
            Some(left) => *left -= 1,
            None => {}
        }
        if self.dead { Err(code) } else { Ok(()) }
    }

    /// Whether the write that the power went with leaves a part behind.
    fn leaves_partial_write(&mut self) -> bool {
        self.left.take().is_some()
    }

    fn strikes(&mut self, share: u32) -> bool {
        share > 0 && self.chance.as_mut().is_some_and(|chance| chance.random_range(0..1000) < share)
    }

    fn part(&mut self, of: usize) -> usize {
        self.chance.as_mut().map_or(0, |chance| chance.random_range(0..=of))
    }
}
