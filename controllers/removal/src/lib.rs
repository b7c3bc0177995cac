//! Removes Drydock from a cluster, whatever is left of it. Each node is left as it was before its maintenance, and each
//! Deployment and autoscaler with the number that it had before a surge.
//!
//! ```text
//! order ──▶ listing ──▶ undo ──▶ plan: what one object still has of Drydock, and the writes that take it back
//!   │                    └─────▶ the host, with UID and resourceVersion
//!   └──▶ deletion ─────────────▶ the host, with UID and resourceVersion
//! ```
//!
//! Annotations of tenants' objects are read here with an admin's rights. What may not be broken:
//!
//! - A text of the cluster is a JSON value from the host to the decision. Nothing takes it apart, and nothing runs it.
//! - A decision reads one object and changes the same object. The record of a surge counts on the object whose UID it names.
//! - Each write carries the UID and the resourceVersion of the object that it was decided on. Neither is ever empty: the host
//!   takes an empty one for no precondition.
//! - An object is tried a few times, and then reported. What fails on an object of a tenant keeps no other object as it is.
//! - No control character of a text of the cluster reaches the terminal.

mod plan;

mod report;

mod listing;

mod host_wait;

mod deletion;
mod undo;

mod order;

pub use order::{RemovalError, RemovalMode, remove};
pub use report::{RemovalLine, Urgency};
