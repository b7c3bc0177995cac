//! The message of imperative eviction when the host refuses (KEP-4563, Eviction): how it is written, and how other
//! messages quote it. It is for people; programs read `blocked`.

use drydock_api::text::quoted;

/// The text of KEP-4563, which follows the cause.
const RETRIES_WORDS: &str = ". Could not evict a pod due to failing eviction requests, number of retries: ";
const BUDGET_WORDS: &str = "PodDisruptionBudget ";
const SEVERAL_BUDGETS_WORDS: &str = "The pod is covered by more than one PodDisruptionBudget";

/// What refused the eviction of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalSource {
    /// A PodDisruptionBudget, or the fact that several cover the pod.
    Budget,
    /// An admission webhook or policy.
    Admission,
    /// The API server, for another reason: authorization, an invalid object.
    ApiServer,
}

/// The message about an eviction that has been refused `retries` times. It begins with the cause of the last refusal.
pub fn message(retries: u32, by: RefusalSource, why: &str) -> String {
    format!("{}{RETRIES_WORDS}{retries}", cause(by, why))
}

/// What refused and why. Texts of other components are quoted.
pub fn cause(by: RefusalSource, why: &str) -> String {
    match by {
        RefusalSource::Budget => why.trim_end_matches('.').to_owned(),
        RefusalSource::Admission => format!("An admission webhook or policy refused: {}", quoted(why)),
        RefusalSource::ApiServer => format!("The API server refused: {}", quoted(why)),
    }
}

/// A [`message`] without the number of retries, which changes while the cause stays the same. Other texts are
/// returned unchanged.
pub fn without_retries(message: &str) -> &str {
    match message.rsplit_once(RETRIES_WORDS) {
        Some((why, retries)) if retries.bytes().all(|b| b.is_ascii_digit()) => why,
        _ => message,
    }
}

/// The refusal of one budget, for example `PodDisruptionBudget "zero" allows 0 disruptions`. The name is quoted
/// because it can be a word such as `never`.
pub fn budget_refusal(name: &str, why: &str) -> String {
    format!("{BUDGET_WORDS}\"{name}\" {why}")
}

/// The refusal because several budgets cover a pod, with the names of two if they are known.
pub fn several_budgets_refusal(names: Option<(&str, &str)>) -> String {
    let which =
        names.map_or_else(String::new, |(one, other)| format!(" (\"{one}\" and \"{other}\" at least)"));
    format!("{SEVERAL_BUDGETS_WORDS}{which}, which the eviction API does not support")
}

#[cfg(test)]
mod tests {
    use drydock_api::node_maintenance::columns;
    use drydock_api::node_maintenance::{Blocker, NodeMaintenance, NodeMaintenanceNodeStatus, PodReference};
    use drydock_api::reasons::POD_DISRUPTION_BUDGET;
    use jiff::Timestamp;

    use super::*;

    /// The table of NodeMaintenances shows a budget's name, which it takes from these messages.
    #[test]
    fn the_table_names_a_budget_and_not_several() {
        let one = budget_refusal("zero", "allows 0 disruptions");
        let mut expected = vec![(one, " zero")];
        expected.extend([None, Some(("a", "b"))].map(|names| (several_budgets_refusal(names), "")));
        for (why, name) in expected {
            for quoted in [why.clone(), message(7, RefusalSource::Budget, &why)] {
                assert_eq!(
                    shown(quoted),
                    format!("1 of 0 pods is blocked; oldest: ns/p by PodDisruptionBudget{name} (0s)")
                );
            }
        }
    }

    /// The cell `Message` of a maintenance with one blocked pod.
    fn shown(message: String) -> String {
        let pod = PodReference { namespace: "ns".into(), name: "p".into(), uid: "u".into() };
        let reason = POD_DISRUPTION_BUDGET.to_owned();
        let blocker = Blocker { pod, reason, message, since_time: Some(Timestamp::UNIX_EPOCH) };
        let node =
            NodeMaintenanceNodeStatus { blocked_pods: 1, blockers: vec![blocker], ..Default::default() };
        let mut maintenance = NodeMaintenance::default();
        maintenance.status.node_statuses.push(node);
        let cells = columns::cells(&maintenance, Timestamp::UNIX_EPOCH);
        cells.last().and_then(|cell| cell.as_str()).unwrap_or_default().to_owned()
    }

    #[test]
    fn the_number_of_retries_is_left_out_and_nothing_else() {
        for by in [RefusalSource::Budget, RefusalSource::Admission, RefusalSource::ApiServer] {
            let quoted = message(1, by, "no: never");
            assert_eq!(without_retries(&quoted), without_retries(&message(u32::MAX, by, "no: never")));
            let words = without_retries(&quoted);
            assert!(words.trim_end_matches('"').ends_with("no: never") && !words.contains('1'), "{words}");
            assert!(quoted.starts_with(without_retries(&quoted)), "the cause comes first: {quoted}");
        }
        for other in [
            "",
            "b allows 0",
            "y. Could not evict a pod due to failing eviction requests, number of retries: x",
        ] {
            assert_eq!(without_retries(other), other);
        }
    }
}
