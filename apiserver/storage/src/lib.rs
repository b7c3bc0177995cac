//! Storage of an aggregated API server: a byte-level interface ([`backend`]), and the layers above it.
//!
//! ```text
//!   server verbs ── converted (a version that is not stored)
//!        │  Storage (objects, selectors, preconditions)
//!   ┌────┴─────┐
//!   │  cache   │  snapshot, ring, one cursor per watcher   (reads, watches)
//!   └────┬─────┘
//!   ┌────┴─────┐
//!   │  store   │  objects <-> bytes, compare-and-swap (writes)
//!   └────┬─────┘
//!        │  Backend (keys, bytes, revisions)
//!   ┌────┴────┬────────┐
//!   │ sqlite  │  etcd  │   crates of their own: drydock-storage-sqlite, drydock-storage-etcd
//! ```
//!
//! Nothing in this crate knows which kinds are stored, or where.

pub mod backend;
pub mod storage;

pub mod cache;
pub mod converted;
pub mod fence;
mod scope;
pub mod store;

pub mod location;
pub mod retention;
pub mod values;

mod items;
mod pinned;
mod stored;
pub mod work_meter;

#[cfg(feature = "test-util")]
pub mod testing;
