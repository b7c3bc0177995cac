//! What a request says of itself: the user, what is asked for, from where and with which options. Nothing here does I/O.

pub mod info;
pub mod query;
pub mod user;

pub mod continue_token;
pub mod delete_options;
pub mod list_options;
pub mod write_options;

pub(crate) mod spans;
pub mod warnings;
