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

mod apply;
mod backend;
mod check;
mod checkpoints;
mod compaction;
mod connect;
mod copy;
mod data_directory;
mod disk_full;
mod early_compaction;
mod error;
pub mod failpoints;
mod feed;
mod file;
mod import;
mod lock;
mod log_check;
mod moved;
mod open;
mod open_files;
mod progress;
mod queue;
mod quota;
mod read;
mod readers;
mod row;
mod schema;
mod store_fault;
mod store_format;
mod temporary_backup;
mod watch;
mod writer;

pub use backend::{SqliteBackend, SqliteOptions};
pub use check::{Contents, check};
pub use copy::{backup, restore};
pub use data_directory::{DataDirectory, file, make_folder};
pub use import::{FileImport, imported};
pub use moved::{attempt, begin_move, end_move, reclaim, undo_move};
pub use progress::Progress;
