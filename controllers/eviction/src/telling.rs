//! What people are told of a request: the owner of its pod by events, the admin by the log.

use drydock_api::eviction_request::interceptors::DEFAULT_INTERCEPTORS;
use drydock_api::eviction_request::{EvictionRequest, EvictionRequestStatus};
use drydock_runtime::events::Severity;
use drydock_runtime::{Cacheable, Change, Context, ObjectKey, target};
use tracing::{debug, warn};

use crate::machine::Warning;

/// Tells the pod's owner, with what the status says now.
pub(crate) fn tell(
    context: &Context,
    request: &EvictionRequest,
    status: &EvictionRequestStatus,
    warnings: Vec<Warning>,
) {
    if warnings.is_empty() {
        return;
    }
    let request = EvictionRequest { status: status.clone(), ..request.clone() };
    for Warning { reason, message } in warnings {
        warn!(request = %request.key(), reason, "{message}");
        context.recorder.tell_owner(&request, Severity::Warning, reason, &message);
    }
}

/// Tells the pod's owner that an interceptor has begun. The default ones are no news to him: every pod has them.
pub(crate) fn tell_of_beginning(context: &Context, change: &Change<EvictionRequest>) {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return };
    let of_others = |name: &str| !DEFAULT_INTERCEPTORS.contains(&name);
    let Some(active) = new.active_interceptor_status().filter(|active| of_others(&active.name)) else {
        return;
    };
    let had_begun = old.interceptor(&active.name).is_some_and(|before| before.start_time.is_some());
    if active.start_time.is_some() && !had_begun && context.may_write() {
        let message = format!("{} has begun", active.name);
        context.recorder.tell_owner(new, Severity::Normal, "InterceptorStarted", &message);
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
