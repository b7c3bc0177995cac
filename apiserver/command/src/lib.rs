//! The command line that our programs share: flags, the file that may contain them, values in Kubernetes' formats,
//! errors in one line, logs.

mod config_file;
mod failure;
pub mod logs;
#[cfg(any(test, feature = "test-util"))]
pub mod manual;
pub mod read;

pub use failure::fail;
pub use read::{FlagsRefusal, duration, read};
