//! Interceptors that come with Drydock: [`imperative`] calls the eviction API, [`daemonset`] deletes
//! DaemonSet pods when the drain targets cover them.
//!
//! An interceptor acts on a request while it is the active one, and owns its entry in `status.interceptors`, which it
//! writes by server-side apply under its own name (`report`).

mod node_targets;
mod report;
mod target_pod;
#[cfg(test)]
mod testing;

pub mod daemonset;
pub mod imperative;
