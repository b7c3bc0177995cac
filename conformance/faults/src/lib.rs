//! The embedded store through crashes: the program `crash` kills processes that write, and takes the power from a disk.
//!
//! This library is that disk, under SQLite: what was not synced is lost, in part or out of order, and what is asked of it
//! may fail. Files are real ones, so that everything else sees them; what would be on the platter is kept beside them.
//!
//! ```text
//!   SQLite ── sqlite3_vfs ──> raw ──> disk ──> real files   what the system shows
//!                                      │ └──> node          what is durable, what is not yet
//!                                      └──> locks, memory   of this process: no other opens these files
//! ```
//!
//! `raw` alone is unsafe: SQLite has no safe interface for this, and the crates that make one want libclang to build.

mod disk;
mod faults;
mod locks;
mod memory;
mod node;
mod raw;

pub use disk::{Disk, disk};
pub use faults::Faults;
pub use raw::install;
