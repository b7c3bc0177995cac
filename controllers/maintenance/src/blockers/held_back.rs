//! Pods that are not asked to leave for now: their last request came to nothing, or their workload would put them there again.

use drydock_api::node_maintenance::blocker::{
    OTHER, REQUEST_WITHDRAWN, WORKLOAD_POD, WORKLOAD_RETURNS, WRONG_TARGET,
};
use drydock_api::time::format_seconds;
use drydock_runtime::Pod;
use jiff::Timestamp;

use super::cause::BlockCause;
use crate::REQUESTER;
use crate::requests::failures::{FailureCause, RequestFailure};
use crate::requests::returns::PodReturns;

/// The last request came to nothing.
pub(super) fn why_failed(pod: &Pod, failure: &RequestFailure) -> BlockCause {
    let (reason, what) = match failure.cause {
        FailureCause::Validation => return why_invalid(pod, &failure.why),
        FailureCause::Withdrawn => {
            let what = format!("Others took the requester {REQUESTER} out of the pod's EvictionRequest");
            (REQUEST_WITHDRAWN, what)
        }
        FailureCause::Deleted => (REQUEST_WITHDRAWN, "Others deleted the pod's EvictionRequest".to_owned()),
        FailureCause::Evicted => {
            (OTHER, "The pod's EvictionRequest has ended as Evicted while the pod is there".to_owned())
        }
        FailureCause::WrongTarget => {
            (WRONG_TARGET, "Others made the pod's EvictionRequest, for another pod".to_owned())
        }
    };
    let times = if failure.count == 1 { String::new() } else { format!(" {} times in a row", failure.count) };
    let again = format_seconds(failure.again);
    BlockCause::new(reason, format!("{what}{times}; the pod is asked for again at {again}"))
}

/// The request failed validation.
pub(super) fn why_invalid(pod: &Pod, words: &str) -> BlockCause {
    BlockCause::new(if pod.in_group { WORKLOAD_POD } else { OTHER }, words)
}

/// A workload has put the pod there.
pub(super) fn why_returned(returns: &PodReturns, pod: &Pod, now: Timestamp) -> Option<BlockCause> {
    let (said, again) = returns.held_back(pod, now)?;
    let message = format!("{said}; it is asked to leave at {}", format_seconds(again));
    Some(BlockCause::new(WORKLOAD_RETURNS, message))
}
