//! What all programs share for their logs: the targets that `-v` turns on, the text of an error, and which failures of
//! a watch are logged.

pub mod target;
#[cfg(feature = "test-util")]
pub mod testing;

mod error;
mod watch;

pub use error::{is_unreachable, with_causes};
pub use watch::WatchFailures;
