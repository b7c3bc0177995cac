//! Storage of an aggregated API server: one byte-level seam, and everything that is written once above it.
//!
//! ```text
//!   server verbs
//!        │  Storage (objects, selectors, preconditions)
//!   ┌────┴─────┐
//!   │  cache   │  snapshot, ring, one cursor a watcher   (reads, watches)
//!   └────┬─────┘
//!   ┌────┴─────┐
//!   │  store   │  objects <-> bytes, compare-and-swap loops (writes)
//!   └────┬─────┘
//!        │  Backend (keys, bytes, revisions)
//!   ┌────┴────┬────────┐
//!   │ sqlite  │  etcd  │
//! ```
//!
//! Nothing here knows which kinds are stored.

pub mod backend;
pub mod compaction;
pub mod etcd;
pub mod failpoints;
pub mod fence;
mod items;
pub mod migrate;
pub mod place;
pub mod progress;
pub mod sqlite;
pub mod storage;
mod stored;
mod values;

pub mod cache;
pub mod scope;
pub mod store;
