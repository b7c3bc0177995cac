//! The embedded backend: one SQLite file, for an API server on one machine.
//!
//! ```text
//!   write ──> bounded queue ──> writer thread ── COMMIT (fsync) ──> EventFeed ──> answers
//!                                    │                               │ ring of recent events, head revision
//!   get, range ──> Readers ──────────┤ log table                     ▼
//!                                    └──────── catch-up ───────> one pump per watch ──> channel
//! ```
//!
//! One thread writes: all queued writes share one transaction and one fsync, each with a revision of its own. Nothing
//! is answered or shown to a watch before COMMIT has returned. Watches pull: a slow one reads its events from the log
//! table later, and never delays the writer.
//!
//! Beside the file lie SQLite's log (`-wal`) and its index (`-shm`), and our lock (`.lock`), which keeps every other
//! process from the store and records a failed sync. A backup is `NAME.xxxxxx.part` until it is checked and gets its
//! name.

mod backend;
mod data_directory;

// Writes: one thread.
mod apply;
mod checkpoints;
mod compaction;
mod disk_full;
mod early_compaction;
mod queue;
mod quota;
mod writer;

// Reads and watches.
mod feed;
mod read;
mod readers;
mod row;
mod watch;

// The files, from the lock to the first connection.
mod connect;
mod file;
mod lock;
mod open;
mod schema;

// Work on a store that no server has open, and backups of one in use.
mod check;
mod copy;
mod import;
mod moved;
mod temporary_backup;

mod error;
pub mod failpoints;

pub use backend::{SqliteBackend, SqliteOptions};
pub use check::{Contents, Progress, ProgressStage, check};
pub use copy::{backup, restore};
pub use data_directory::DataDirectory;
pub use import::{FileImport, imported};
pub use moved::{attempt, begin_move, end_move, reclaim, undo_move};
pub use read::pairs_of;
