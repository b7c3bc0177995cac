//! What keeps the active interceptor from evicting the pod, as far as its word is believed.
//!
//! Anybody with rights on pods may register an interceptor for them and let it report anything: the name of a budget would
//! send people to one that is not to blame. The status of the request shows the report as it is; whatever we say of it
//! elsewhere comes from here.

use jiff::Timestamp;

use super::interceptors::is_default;
use super::types::EvictionRequest;
use crate::reasons::{INTERCEPTOR, OTHER, REASONS, STATES};

/// What blocks the eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BelievedBlock<'r> {
    /// One of [`REASONS`]: [`INTERCEPTOR`] if an interceptor of others says that it is blocked.
    pub reason: &'static str,
    /// The name of what blocks; that of the interceptor, if it is one of others.
    pub name: &'r str,
    /// One of [`STATES`], or empty.
    pub state: &'static str,
    /// Since when, as the interceptor says.
    pub since_time: Option<Timestamp>,
}

/// Returns what the active interceptor says keeps it from evicting the pod; `None` if it says nothing of the kind. The
/// reason, the name and the state of the default interceptors are believed; of others, that they are blocked.
pub fn believed_block(request: &EvictionRequest) -> Option<BelievedBlock<'_>> {
    let active = request.active_interceptor_status()?;
    let blocked = active.blocked.as_deref()?;
    let since_time = blocked.since_time;
    if !is_default(&active.name) {
        return Some(BelievedBlock { reason: INTERCEPTOR, name: &active.name, state: "", since_time });
    }
    let reason = REASONS.into_iter().find(|known| *known == blocked.reason).unwrap_or(OTHER);
    let state = STATES.into_iter().find(|known| *known == blocked.state).unwrap_or_default();
    Some(BelievedBlock { reason, name: &blocked.name, state, since_time })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::eviction_request::interceptors::IMPERATIVE_EVICTION;
    use crate::reasons::{POD_DISRUPTION_BUDGET, SHORT_NOW};

    fn reported(interceptor: &str, blocked: &Value) -> EvictionRequest {
        let entry = json!({"name": interceptor, "message": "", "blocked": blocked});
        let status = json!({"activeInterceptors": [interceptor], "interceptors": [entry]});
        serde_json::from_value(json!({ "status": status })).unwrap()
    }

    #[test]
    fn an_interceptor_of_others_blames_itself_whatever_it_reports() {
        let blocked = json!({"reason": "PodDisruptionBudget", "name": "coredns", "state": "ShortNow"});
        let theirs = reported("keeper.example.com", &blocked);
        let block = believed_block(&theirs).unwrap();
        assert_eq!((block.reason, block.name, block.state), (INTERCEPTOR, "keeper.example.com", ""));
        let ours = reported(IMPERATIVE_EVICTION, &blocked);
        let block = believed_block(&ours).unwrap();
        assert_eq!((block.reason, block.name, block.state), (POD_DISRUPTION_BUDGET, "coredns", SHORT_NOW));
    }

    #[test]
    fn a_reason_and_a_state_that_are_unknown_are_not_passed_on() {
        let ours = reported(IMPERATIVE_EVICTION, &json!({"reason": "Later", "name": "n", "state": "Odd"}));
        let block = believed_block(&ours).unwrap();
        assert_eq!((block.reason, block.name, block.state), (OTHER, "n", ""));
        let none = reported(IMPERATIVE_EVICTION, &Value::Null);
        assert_eq!(believed_block(&none), None);
    }
}
