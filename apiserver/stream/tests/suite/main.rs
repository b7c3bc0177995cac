//! The status stream over real storage, as a server calls it and as a client reads it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod history;
mod limits;
mod model;
mod resume;
mod shaky;
mod streams;
mod watches;
mod world;
