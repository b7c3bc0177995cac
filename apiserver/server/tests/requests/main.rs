//! Requests through `ApiGroup::handle` on a small kind, stored in SQLite behind the cache.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod admission;
mod apply;
mod bounds;
mod create;
mod delete;
mod dispatch;
mod documents;
mod fencing;
mod fixture;
mod full_store;
mod gadget;
mod hostile;
mod list;
mod mutation;
mod patch;
mod port;
mod protobuf;
mod races;
mod update;
mod versions;
mod watch;
