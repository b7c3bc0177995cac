//! The report of an interceptor: its entry in the status of a request, and the events for the owner of the pod.

mod entry;
mod owner_notice;
mod reporter;

pub(crate) use entry::{ProgressReport, REFUSED};
pub(crate) use owner_notice::STANDSTILL;
pub(crate) use reporter::{Audience, ReportOutcome, Reporter, at, earliest};
