//! The command line of a program, the same for each of ours: flags, the file that holds them too, values as Kubernetes
//! writes them, refusals and failures in one line, logs.

pub mod config_file;
pub mod duration;
pub mod failure;
pub mod logs;
pub mod manual;
pub mod read;

pub use duration::duration;
pub use failure::fail;
pub use read::{Refusal, read};
