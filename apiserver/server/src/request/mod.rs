//! What a request says of itself beside its path and user: its options, and what is told of it. Nothing here does I/O.

pub mod continue_token;
pub mod delete_options;
pub mod list_options;
pub mod write_options;

pub(crate) mod spans;
pub mod warnings;
