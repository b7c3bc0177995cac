//! What a request says of itself: the user, and what is asked for. Nothing here does I/O.

pub mod info;
pub mod query;
pub mod user;
