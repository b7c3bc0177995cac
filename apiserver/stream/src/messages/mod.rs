//! Makes the messages of the stream from our objects: pure functions, one module for each message.

pub mod eviction;
pub mod fields;
pub mod maintenance;
pub mod node;

mod plan;
mod values;

pub use values::{is_name, timestamp};
