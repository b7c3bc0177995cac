//! What both programs share about their logs: the targets that `-v` turns on, the words of an error, and which failures of
//! a watch are worth a line.

pub mod target;

mod error;
mod watch;

pub use error::{is_unreachable, with_causes};
pub use watch::WatchFailures;
