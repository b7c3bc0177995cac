//! The options of a request, and what the log and its answer say of it. Nothing here does I/O.

pub mod continue_token;
pub mod delete_options;
pub mod list_options;
pub mod write_options;

pub(crate) mod spans;
pub mod warnings;
