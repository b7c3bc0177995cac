//! The report of an interceptor: its entry in the status of a request, and the events for the owner of the pod.

mod apply;
mod ending_pod;
mod owner_notice;
mod reporter;

use std::time::Duration;

pub(crate) use drydock_interceptor_runtime::entry::ProgressReport;
pub(crate) use ending_pod::{gone, terminating};
pub(crate) use owner_notice::BUDGET_STANDSTILL;
pub(crate) use reporter::{Audience, ProgressUpdate, ReportOutcome, Reporter, at, earliest};

/// A report that was refused is tried again after this. The turn may be over, which the cache shows by then.
pub(crate) const REFUSED_REPORT_RETRY: Duration = Duration::from_secs(30);
