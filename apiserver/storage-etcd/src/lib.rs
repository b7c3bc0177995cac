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

mod assemble;
mod backend;
mod compactor;
mod config;
mod deadline;
mod error;
mod hedge;
mod import;
mod keys;
mod members;
mod move_source;
mod quorum_contact;
mod record;
mod requests;
mod revision_offset;
mod space;
mod stream_liveness;
mod watch;
mod watch_state;
mod write_permission;
mod writes;

pub use backend::{EtcdBackend, reclaim};
pub use config::EtcdConfig;
pub use import::PrefixImport;
pub use move_source::{MoveMark, MoveSource};
