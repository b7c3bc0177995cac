//! Tests of the status stream over real storage, called as by the server and read as by a client.

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
