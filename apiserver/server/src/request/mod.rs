//! A request as its parts say it: who asks, for what, from where and with which options. Nothing here asks anybody.

pub mod info;
pub mod query;
pub mod user;

pub mod continue_token;
pub mod delete_options;
pub mod list_options;
pub mod write_options;

pub(crate) mod spans;
pub mod warnings;
