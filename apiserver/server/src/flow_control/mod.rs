//! Flow control: which requests are served when not all can be (a small form of k8s.io/apiserver
//! pkg/util/flowcontrol).
//!
//! ```text
//!   user ──> PriorityLevel ──> Share of the seats          request ──> seats that it takes
//!                └── User::flow ──> one queue a flow            │
//!                          Scheduler: arrive, release, leave <──┘
//!                          FlowControl: waits for it; Seats are given back when dropped
//! ```

pub mod fair_budget;
pub(crate) mod offload;
pub mod priority_level;
mod replaced_bytes;
mod share;
mod work_estimate;

mod level;
mod scheduler;

mod control;
mod figures;
mod seats;

pub use control::{FlowControl, InFlightLimits, TooManyRequests};
pub use figures::{InFlight, LevelFigures, Waits};
pub use priority_level::{PriorityLevel, PriorityLevels};
pub use replaced_bytes::ReplacedBytes;
pub use seats::Seats;
pub use share::Share;
pub use work_estimate::{Listed, RequestWork};
