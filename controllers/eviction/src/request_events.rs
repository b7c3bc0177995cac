//! Events about a request for the owner of its pod, and the same in the log for the admin.

use drydock_api::eviction_request::interceptors::is_default;
use drydock_api::eviction_request::{EvictionRequest, EvictionRequestStatus};
use drydock_api::metav1::ManagedFieldsEntry;
use drydock_api::text::quoted;
use drydock_logging::target;
use drydock_runtime::events::reasons::{INTERCEPTOR_SKIPPED, INTERCEPTOR_STARTED};
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

/// Publishes to the pod's owner that others have ended the turn of an interceptor, and who: their field managers. The
/// users stand in the API server's audit log alone, because a client chooses the name of its field manager.
///
/// An interceptor writes its entry under its own name (controllers/interceptor-runtime/README.md), or under another
/// that it keeps from its first report on: the completion of a manager that is neither is that of others. One that
/// completes under the name of the interceptor cannot be told from it, and gets no event.
pub(crate) fn publish_skip(context: &ControllerContext, change: &ObjectChange<EvictionRequest>) {
    let Some(new) = &change.new else { return };
    let ended = new.active_interceptor_status().filter(|active| active.completion_time.is_some());
    let Some((name, at)) = ended.and_then(|active| Some((&active.name, active.completion_time?))) else {
        return;
    };
    let old = change.old.as_ref().filter(|old| old.metadata.uid == new.metadata.uid);
    let is_unpublished = match old {
        Some(old) => old.interceptor(name).is_none_or(|before| before.completion_time.is_none()),
        // Who has reported before is not known any more.
        None => at >= context.lease.previous_renewal() && !has_begun(new, name),
    };
    let before = old.map(|old| writers(old, name)).unwrap_or_default();
    let now = writers(new, name);
    let is_own = |manager: &String| manager == name || before.contains(manager);
    if !is_unpublished || now.is_empty() || now.iter().any(is_own) || !context.may_write() {
        return;
    }
    let who: Vec<String> = now.iter().map(|manager| quoted(manager)).collect();
    let message = format!(
        "the turn of {name} was ended by others, with the field manager {}. The audit log of drydock-apiserver names the user",
        who.join(", ")
    );
    warn!(namespace = new.namespace(), reason = INTERCEPTOR_SKIPPED, "{}: {message}", subject(new));
    context.recorder.publish_to_owner(new, Severity::Warning, INTERCEPTOR_SKIPPED, &message);
}

fn has_begun(request: &EvictionRequest, name: &str) -> bool {
    request.interceptor(name).is_some_and(|entry| entry.start_time.is_some())
}

/// The field managers that own the entry of an interceptor. That of the controller, which made it, is not in the cache.
fn writers(request: &EvictionRequest, name: &str) -> Vec<String> {
    let key = format!("k:{}", serde_json::json!({ "name": name }));
    let owns = |entry: &&ManagedFieldsEntry| !entry.fields()["f:status"]["f:interceptors"][&key].is_null();
    let entries = request.metadata.managed_fields.iter().filter(owns);
    entries.map(|entry| entry.manager.clone()).collect()
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
    let cause = if new.conditions != old.conditions {
        "a condition of the request changed"
    } else if new.active_interceptors != old.active_interceptors {
        "the turn passes on"
    } else {
        "the time of the pod's interceptors or the generation changed"
    };
    debug!(target: target::WRITES, request = %key, "status written: {cause}");
}

#[cfg(test)]
#[path = "request_events_tests.rs"]
mod tests;
