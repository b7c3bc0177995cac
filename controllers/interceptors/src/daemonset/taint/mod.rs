//! A NoSchedule taint of our own on nodes from which DaemonSet pods are being drained, so that these are not
//! put back at once: the DaemonSet controller gives its pods a toleration of a cordon, but not of this taint.
//! The effect is never NoExecute, which would evict pods before it is their turn. The taint is removed when
//! no maintenance in Drain has DaemonSet pods of the node among its targets.
//!
//! An admission policy that refuses those pods instead could distinguish DaemonSets. But each refused create
//! fails the sync of the whole DaemonSet, which tries one node at random and backs off to 1,000 s: with one,
//! five or fifty drained nodes, a node that joined could still lack its pod after two minutes (measured with
//! Kubernetes 1.36).

mod controller;
mod decide;

pub(crate) use controller::{EFFECT, TAINT, is_pending, may_be_pending, run};
pub(crate) use decide::{has_taint, nodes_of};
