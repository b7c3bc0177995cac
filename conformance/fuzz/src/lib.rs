//! Decodes what a stranger can send, under a coverage-guided fuzzer (libFuzzer): no input may cause a panic,
//! a hang or disproportionate use of memory, and what is accepted must mean the same after it is written and
//! read again.
//!
//! ```text
//!   seeds/TARGET/*     what a target starts from, and what was once found: replayed by `cargo test`
//!   dictionary         words that the mutations try
//!   targets            one function a decoder
//!   bin/fuzz           libFuzzer's main: DRYDOCK_FUZZ_TARGET=TARGET fuzz [libFuzzer's flags] [folders]
//! ```
//!
//! Run by `conformance/test fuzz`, a bounded number of times, and by `conformance/soak fuzz`, for a bounded time.
// A target panics when it finds a fault.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

pub mod kinds;
pub mod targets;

pub use targets::{FuzzTarget, TARGETS, target};
