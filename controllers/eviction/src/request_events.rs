//! Events about a request for the owner of its pod, and the same in the log for the admin.

use drydock_api::eviction_request::interceptors::is_default;
use drydock_api::eviction_request::{EvictionRequest, EvictionRequestStatus};
use drydock_logging::target;
use drydock_runtime::events::reasons::INTERCEPTOR_STARTED;
use drydock_runtime::events::{Severity, subject};
use drydock_runtime::{Cacheable, ControllerContext, ObjectChange, ObjectKey};
use tracing::{debug, warn};

use crate::decision::Warning;

/// Logs the warnings and publishes them to the pod's owner; `status` is the one that was just written.
pub(crate) fn publish_warnings(
    context: &ControllerContext,
    request: &EvictionRequest,
    status: &EvictionRequestStatus,
    warnings: Vec<Warning>,
) {
    if warnings.is_empty() {
        return;
    }
    let request = EvictionRequest { status: status.clone(), ..request.clone() };
    for Warning { reason, message } in warnings {
        warn!(namespace = request.namespace(), reason, "{}: {message}", subject(&request));
        context.recorder.publish_to_owner(&request, Severity::Warning, reason, &message);
    }
}

/// Publishes to the pod's owner that an interceptor has begun. The default ones get no event: every pod has
/// them. If the request is seen for the first time, and the interceptor began before the previous holder of
/// the lease last renewed, that holder has published the event. (An interceptor that began between that
/// renewal and a crash may get two events.)
pub(crate) fn publish_start(context: &ControllerContext, change: &ObjectChange<EvictionRequest>) {
    let Some(new) = &change.new else { return };
    let active = new.active_interceptor_status().filter(|active| !is_default(&active.name));
    let Some((name, began)) = active.and_then(|active| Some((&active.name, active.start_time?))) else {
        return;
    };
    let seen_before = change.old.as_ref().filter(|old| old.metadata.uid == new.metadata.uid);
    let is_unpublished = match seen_before {
        Some(old) => old.interceptor(name).is_none_or(|before| before.start_time.is_none()),
        None => began >= context.lease.previous_renewal(),
    };
    if is_unpublished && context.may_write() {
        let message = format!("{name} has begun");
        context.recorder.publish_to_owner(new, Severity::Normal, INTERCEPTOR_STARTED, &message);
    }
}

/// Logs what a write has changed.
pub(crate) fn report(key: &ObjectKey, old: &EvictionRequestStatus, new: &EvictionRequestStatus) {
    for condition in new.conditions.iter().filter(|c| c.is_true() && !old.conditions.contains(c)) {
        debug!(request = %key, condition = condition.type_, reason = condition.reason, "finished");
    }
    if new.active_interceptors != old.active_interceptors
        && let Some(active) = new.active_interceptors.first()
    {
        debug!(request = %key, interceptor = active, "interceptor's turn");
    }
    let ended = new.conditions != old.conditions;
    let cause = if ended { "a condition of the request changed" } else { "the turn passes on" };
    debug!(target: target::WRITES, request = %key, "status written: {cause}");
}

#[cfg(test)]
#[path = "request_events_tests.rs"]
mod tests;
