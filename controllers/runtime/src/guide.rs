//! What people can do about a cause: a sentence, and the heading of the guide (controllers/README.md) that says more.

use drydock_api::reasons::{
    ADMISSION_WEBHOOK, DAEMON_SET_RETURNS, FINALIZER, INTERCEPTOR, KEEPS_UNHEALTHY, NEVER_ALLOWS,
    NO_NODE_AGENT, NOT_OBSERVED, OTHER, POD_DISRUPTION_BUDGET, REASONS, SEVERAL_BUDGETS, STATES, TERMINATING,
    WORKLOAD_POD, WORKLOAD_RETURNS,
};

/// The heading about pods that may stay forever.
pub const LATER_TYPES: &str = "\"DaemonSets and static pods\"";

/// Returns the heading about a blocker of this reason; for a budget, the heading about its state, if that is
/// one of [`STATES`].
pub fn heading(reason: &str, state: &str) -> &'static str {
    match reason {
        _ if may_stay(reason) => LATER_TYPES,
        POD_DISRUPTION_BUDGET => {
            STATES.into_iter().find(|known| *known == state).unwrap_or(POD_DISRUPTION_BUDGET)
        }
        _ => REASONS.into_iter().find(|known| *known == reason).unwrap_or(OTHER),
    }
}

/// Returns the words with which a message refers to a heading of the guide.
pub fn reference(heading: &str) -> String {
    format!("(see {heading} in controllers/README.md)")
}

/// Whether a blocker of this reason may stay forever because no one can remove its cause.
pub fn may_stay(reason: &str) -> bool {
    [DAEMON_SET_RETURNS, NO_NODE_AGENT].contains(&reason)
}

/// What to do about a cause, where its message does not say it.
pub fn advice(reason: &str, state: &str) -> Option<&'static str> {
    Some(match (reason, state) {
        (POD_DISRUPTION_BUDGET, NEVER_ALLOWS) => {
            "The budget never allows an eviction: add a replica, lower its minAvailable, or raise its maxUnavailable"
        }
        (POD_DISRUPTION_BUDGET, SEVERAL_BUDGETS) => "Narrow the selector of one of the budgets",
        (POD_DISRUPTION_BUDGET, NOT_OBSERVED) => {
            "This takes seconds; if it lasts, see whether kube-controller-manager runs"
        }
        (POD_DISRUPTION_BUDGET, KEEPS_UNHEALTHY) => {
            "Let other pods of the budget become ready, or set its unhealthyPodEvictionPolicy to AlwaysAllow"
        }
        (POD_DISRUPTION_BUDGET, _) => {
            "Let more pods of the budget become ready, or change the budget; the eviction is tried again at once"
        }
        (ADMISSION_WEBHOOK, _) => "Ask whoever runs the webhook or policy; the eviction is tried again",
        (INTERCEPTOR, _) => "Ask the owner of the pod; an interceptor that stays silent is passed over",
        (TERMINATING, _) => "Find out why its containers do not stop",
        (FINALIZER, _) => "Ask whoever set the finalizer to remove it",
        (WORKLOAD_POD, _) => "Ask whoever runs the workload to move the whole group",
        (WORKLOAD_RETURNS, _) => "Keep the workload from tolerating that the node is cordoned",
        _ => return None,
    })
}

/// Returns the end of an event's message about what blocks: what to do, and the place in the guide.
pub fn way_out(reason: &str, state: &str) -> String {
    let advice = advice(reason, state).map_or_else(String::new, |advice| format!(". {advice}"));
    format!("{advice} {}", reference(heading(reason, state)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const GUIDE: &str = include_str!("../../README.md");

    fn is_heading(heading: &str) -> bool {
        let heading = heading.trim_matches('"');
        GUIDE.lines().any(|line| line.starts_with("##") && line.trim_start_matches('#').trim() == heading)
    }

    #[test]
    fn every_reason_and_state_has_a_heading_of_the_guide() {
        for reason in REASONS {
            assert!(is_heading(heading(reason, "")), "{reason}");
        }
        for state in STATES {
            assert_eq!(heading(POD_DISRUPTION_BUDGET, state), state);
            assert!(is_heading(state), "{state}");
        }
        assert_eq!((heading("New", ""), heading(OTHER, NEVER_ALLOWS)), (OTHER, OTHER));
    }

    #[test]
    fn what_to_do_about_a_budget_depends_on_its_state() {
        let advice: BTreeSet<_> =
            STATES.into_iter().filter_map(|s| advice(POD_DISRUPTION_BUDGET, s)).collect();
        assert_eq!(advice.len(), STATES.len());
    }
}
