//! Which pods leave which node: rule by rule, and the example of KEP-4212.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod rules;
mod seed;
mod types;
