//! Which pods leave which node now: the drain-target model of NodeMaintenance (KEP-4212, Pod Selection). No I/O.
//!
//! # Rules
//!
//! Only maintenances in stage Drain take part. Of two maintenances the **older** one is the one whose Drain
//! stage started first; of two that started at once, the one that was created first; else the one whose name
//! sorts first.
//!
//! A maintenance has a **cursor**, the current entry of its plan, and **has reached** a pod when an entry up
//! to the cursor covers it: the type is equal, the priority at most the entry's, and the selector matches or
//! there is none.
//!
//! A maintenance **drains** the pod types up to its last one (`spec.lastPodType`). Pods of later types do not
//! exist for it: its plan does not contain them, they do not count as left on its nodes, and where a rule
//! asks every maintenance on a node about a pod, it asks only those that drain the pod's type:
//!
//! ```text
//!   node one: m1 (last type Default) and m2 (Static)
//!     pods of type Default     leave when m1 and m2 have reached them
//!     pods of type DaemonSet   leave when m2 has, whatever m1 does; on a node of m1 alone they stay
//! ```
//!
//! The **drain targets** of a node say what every maintenance on the node has reached: for each pod type, and
//! for each selector that a plan has for the type, the lowest of the priorities that these maintenances have
//! reached. They are never lowered. A pod **is targeted** when they cover it. Nothing else decides which pods
//! leave, neither here nor in an interceptor.
//!
//! ```text
//!   plan of m1   [ Default 500 ][ Default 5000 ]...         node one: m1 and m2
//!                    ▲ cursor                               drainTargets: Default 500, as m1 is not further
//!   plan of m2   [ Default 1000 ][ Default 5000 ]...        node two: m2 alone
//!                    ▲ cursor                               drainTargets: Default 1000
//! ```
//!
//! With selectors two plans are only partly comparable. Two maintenances may reach one pod by different
//! selectors, so that neither selector makes a target that covers it; a **joined** target then has the
//! requirements of both:
//!
//! ```text
//!   m1 has reached  DaemonSet 1000 app=x  ┐   a pod with app=x and tier=y on a node of both:
//!   m2 has reached  DaemonSet 1000 tier=y ┘   drainTargets: DaemonSet 1000 app=x,tier=y
//! ```
//!
//! A maintenance is **finished** when no targeted pod is left on any of its nodes, and **done with its
//! cursor** when no pod that it has reached is left there. It takes its next entry when it is done with its
//! cursor, and when it and every maintenance that shares a node with it and drains the entry's type are
//! finished. Only pods of types that it drains itself count here. All maintenances that may advance do so
//! together; then the targets are calculated, and the check begins again.
//!
//! A **newcomer** on a node that is further along is fast-forwarded there, and the node goes no further until
//! its own cursor has caught up. A **node that joins** is drained in order as well: the cursor goes back to
//! the first entry that covers a pod there, while the other nodes keep their targets and wait.
//!
//! Maintenances that wait for each other in a cycle could never go on (m1 puts postgres before the rest, m2
//! redis, both of one priority and on one node). A maintenance waits for another one when, on a node of both,
//! there is a pod that is not targeted, and that the first has reached and the other has not:
//!
//! ```text
//!        waits for: postgres is reached by m1 alone
//!   m1 ─────────────────────────────────────────────▶ m2
//!    ◀───────────────────────────────────────────────
//!        waits for: redis is reached by m2 alone
//! ```
//!
//! When no maintenance may advance, one is forced to take its next entry: the oldest of those that are the
//! youngest of a cycle and are finished, as is every maintenance that shares a node with them. A maintenance
//! on no cycle is never forced.
//!
//! # Parts
//!
//! ```text
//!   types ──▶ catalog (selectors as numbers) ──▶ planning (pods counted by class, a node each)
//!                                                  │ ▲
//!                                      targets ◀───┘ └──── advance, contradiction (cursors to their fixed point)
//!                                                  │
//!                                           plan ──▶ types, message
//! ```

mod types;

mod advance;
mod catalog;
mod contradiction;
mod message;
mod plan;
mod planned_maintenance;
mod planning;
mod targets;

pub use plan::plan;
pub use types::{
    CountedPod, DrainingMaintenance, FastForward, MaintenanceOutcome, NodeOutcome, Other, PlanOutcome,
    TargetsByNode,
};
