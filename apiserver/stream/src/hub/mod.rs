//! The hub turns two watches into the logs that subscribers read.
//!
//! ```text
//!   watch of maintenances ─┐            ┌─> Index (each kind) ─> Views ─> subscribers, by their own cursors
//!   watch of evictions ────┴─> Facts ───┘
//! ```
//!
//! It ends when it had no subscribers for a while. It also ends when a watch ends: its subscribers then attach to the
//! next hub with their tokens, like clients that come from another replica.

pub mod attach;
mod command;
mod fill;
pub mod handle;
mod run;
pub mod state;

pub use fill::Stores;
pub use handle::HubHandle;
pub use run::start;
