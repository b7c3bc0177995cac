//! daemonset.apps.k8s.io: deletes a DaemonSet pod once the node's drain targets cover it, and not before.
//!
//! It stays responsible when it was passed over: imperative-eviction leaves these pods to it. During its turn
//! it reports nothing while the pod is not covered, so that it is passed over: such requests are not to be
//! encouraged (KEP-4212). A pod whose successor the module `taint` would keep away is deleted once the taint is
//! set. If a DaemonSet puts its pods back all the same, each deletion is delayed more than the last one.
//!
//! ```text
//! request, pod, maintenance, node ─▶ queue of requests ─▶ decide ─▶ delete, report
//!                                ─▶ queue of nodes    ─▶ taint ─┘ (seen in the cache of nodes; queued if it was not decided yet)
//! ```

mod decide;
mod deletions;
mod progress;
mod reconciler;
mod state;
mod taint;
mod taint_waits;

pub use reconciler::{NAME, READS, run};
