//! The hub: what turns two watches into the logs that subscribers read.
//!
//! ```text
//!   watch of maintenances ─┐            ┌─> Index (each kind) ─> Views ─> subscribers, by their own cursors
//!   watch of evictions ────┴─> Facts ───┘
//! ```
//!
//! It runs only while somebody subscribes. It never starts over: when a watch ends, the hub ends, and its subscribers go
//! to the next one with their tokens, as clients do that come from another replica.

pub mod attach;
pub mod core;
mod fill;
pub mod handle;
mod request;
mod run;

pub use fill::Stores;
pub use handle::Handle;
pub use run::start;
