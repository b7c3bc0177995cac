//! What all programs share for their logs: the targets that `-v` turns on, the text of an error, which failures the
//! client has logged, and which ones of a watch are logged.

pub mod target;
#[cfg(feature = "test-util")]
pub mod testing;

mod error;
mod no_answer;
mod watch;

pub use error::{is_unreachable, with_causes};
pub use no_answer::NoAnswer;
pub use watch::WatchFailures;
