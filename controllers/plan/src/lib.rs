//! Which pods leave which node now: the drain-target model of NodeMaintenance (KEP-4212, Pod Selection). No I/O.
//!
//! A maintenance has a cursor, its current entry of its plan, and has *reached* a pod when an entry up to the cursor
//! covers it. A pod on a node is *targeted* when every maintenance that drains the node has reached it, or the node
//! itself had reached it before: nothing goes back. A maintenance takes its next entry when nothing that it has
//! reached is left, and neither it nor a maintenance that shares a node with it has targeted pods left. Sets of pods,
//! not a single number: with selectors two plans are only partly comparable.
//!
//! ```text
//!   input ──▶ catalog (selectors as numbers) ──▶ board (pods counted by class, a node each)
//!                                                  │ ▲
//!                                      targets ◀───┘ └──── advance (cursors to their fixed point)
//!                                                  │
//!                                        planner ──▶ outcome, message
//! ```

pub mod input;
pub mod outcome;

mod advance;
mod board;
mod catalog;
mod message;
mod planner;
mod replay;
mod targets;

pub use input::{Maintenance, Pod};
pub use outcome::{FastForward, MaintenanceOutcome, NodeOutcome, Outcome};
pub use planner::Planner;
