//! The report of an interceptor: its entry in the status of a request, and the events for the owner of the pod.

mod apply;
mod ending_pod;
mod owner_notice;
mod reporter;

pub(crate) use drydock_interceptor_runtime::entry::{ProgressReport, REFUSED_REPORT_RETRY};
pub(crate) use ending_pod::{gone, terminating};
pub(crate) use owner_notice::BUDGET_STANDSTILL;
pub(crate) use reporter::{Audience, ProgressUpdate, ReportOutcome, Reporter, at, earliest};
