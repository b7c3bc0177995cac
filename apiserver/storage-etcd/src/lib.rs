//! The etcd backend: for production, and for several API servers on one store.
//!
//! ```text
//!   get, range, write ──> PrefixRequests ──(deadlines)──> Members ──(one channel each)──> the current member
//!   watch ──> one task and one connection per watch ──> Assembler ──> channel
//!   compaction turn ──> compactor: one replica at a time, with the same key as Kubernetes' compactor
//! ```
//!
//! A watch has a connection of its own: HTTP/2 shares a connection's flow control, so a receiver that does not read
//! would otherwise hold up requests and other watches. Only caches open watches, a few each; a client's watch reads
//! from a cache, so clients cannot open connections to etcd. Reads are retried within their deadline, and sent to a
//! second member as well if the first one is silent; writes are retried only if they certainly were not carried out.

mod backend;
mod config;
mod keys;

// Requests, their deadlines, and the member that they are sent to.
mod deadline;
mod error;
mod hedge;
mod members;
mod quorum_contact;
mod requests;
mod writes;

// Watches.
mod assemble;
mod stream_liveness;
mod watch;
mod watch_state;

// History, and the space that it takes.
mod compactor;
mod space;

// The record of a prefix, and moves of its objects.
mod import;
mod move_source;
mod prefix_claim;
mod record;
mod record_watch;
mod write_permission;

#[cfg(feature = "test-util")]
pub mod testing;

pub use backend::{EtcdBackend, reclaim};
pub use config::EtcdConfig;
pub use import::PrefixImport;
pub use move_source::{MoveMark, MoveSource};
