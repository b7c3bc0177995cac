//! Finished requests: kept for their requesters to read, then removed.

use drydock_api::eviction_request::{CANCELED, EVICTED, EvictionRequest, REASON_NO_REQUESTERS};
use drydock_api::meta::{Condition, find_condition};
use jiff::Timestamp;

use crate::machine::{Config, Decision};

/// Removal when it is due, else when to look again.
pub(crate) fn after_the_end(request: &EvictionRequest, now: Timestamp, config: &Config) -> Decision {
    let mut decision = match due(request, config) {
        Some(due) if due <= now => return Decision { delete: true, ..Decision::default() },
        wake => Decision { wake, ..Decision::default() },
    };
    if !request.status.active_interceptors.is_empty() {
        let mut status = request.status.clone();
        status.active_interceptors.clear();
        decision.status = Some(status);
    }
    decision
}

/// When the request is to be removed: one that nobody asked for any more soon, so that a requester that changes its mind
/// again finds it; others when the last requester has read the outcome and withdrawn, or after the retention.
fn due(request: &EvictionRequest, config: &Config) -> Option<Timestamp> {
    let ended = |c: &Condition| c.last_transition_time.unwrap_or(Timestamp::MIN);
    let canceled = find_condition(&request.status.conditions, CANCELED).filter(|c| c.is_true());
    if let Some(canceled) = canceled.filter(|c| c.reason == REASON_NO_REQUESTERS) {
        return ended(canceled).checked_add(config.canceled_grace).ok();
    }
    if request.spec.requesters.is_empty() {
        return Some(Timestamp::MIN);
    }
    let end = canceled.or_else(|| find_condition(&request.status.conditions, EVICTED))?;
    ended(end).checked_add(config.retention?).ok()
}
