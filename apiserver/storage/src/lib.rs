//! Storage of an aggregated API server: a byte-level interface ([`backend`]), and the layers above it that both
//! backends share.
//!
//! ```text
//!   server verbs
//!        │  Storage (objects, selectors, preconditions)
//!   ┌────┴─────┐
//!   │  cache   │  snapshot, ring, one cursor per watcher   (reads, watches)
//!   └────┬─────┘
//!   ┌────┴─────┐
//!   │  store   │  objects <-> bytes, compare-and-swap loops (writes)
//!   └────┬─────┘
//!        │  Backend (keys, bytes, revisions)
//!   ┌────┴────┬────────┐
//!   │ sqlite  │  etcd  │
//! ```
//!
//! Nothing in this crate knows which kinds are stored.

pub mod backend;
pub mod storage;

pub mod etcd;
pub mod retention;
pub mod sqlite;

pub mod cache;
pub mod fence;
pub mod scope;
pub mod store;

pub mod location;
pub mod migrate;

pub mod failpoints;
mod items;
pub mod memory_budget;
mod pinned;
pub mod progress;
mod stored;
mod values;
pub mod work_meter;
