//! The message of imperative eviction when the host refuses (KEP-4563, Eviction): how it is written, and how other
//! messages quote it. It is for people; programs read `blocked`.

use crate::text::quoted;

/// The text of KEP-4563, which follows the cause.
const RETRIES: &str = ". Could not evict a pod due to failing eviction requests, number of retries: ";
const BUDGET: &str = "PodDisruptionBudget ";
const SEVERAL: &str = "The pod is covered by more than one PodDisruptionBudget";

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
    format!("{}{RETRIES}{retries}", cause(by, why))
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
    match message.rsplit_once(RETRIES) {
        Some((why, retries)) if retries.bytes().all(|b| b.is_ascii_digit()) => why,
        _ => message,
    }
}

/// The refusal of one budget, for example `PodDisruptionBudget "zero" allows 0 disruptions`. The name is quoted
/// because it can be a word such as `never`.
pub fn budget_refusal(name: &str, why: &str) -> String {
    format!("{BUDGET}\"{name}\" {why}")
}

/// The refusal because several budgets cover a pod, with the names of two if they are known.
pub fn several_budgets_refusal(names: Option<(&str, &str)>) -> String {
    let which =
        names.map_or_else(String::new, |(one, other)| format!(" (\"{one}\" and \"{other}\" at least)"));
    format!("{SEVERAL}{which}, which the eviction API does not support")
}

/// The budget's name in a message that quotes [`budget_refusal`]; `None` if it quotes [`several_budgets_refusal`].
pub fn budget_of(message: &str) -> Option<&str> {
    if message.contains(SEVERAL) {
        return None;
    }
    message.split_once(BUDGET)?.1.strip_prefix('"')?.split_once('"').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_budget_is_read_back_and_several_have_none() {
        let one = budget_refusal("zero", "allows 0 disruptions");
        for quoted in [one.clone(), message(7, RefusalSource::Budget, &one)] {
            assert_eq!(budget_of(&quoted), Some("zero"), "{quoted}");
        }
        for names in [None, Some(("a", "b"))] {
            let several = several_budgets_refusal(names);
            for quoted in [several.clone(), message(7, RefusalSource::Budget, &several)] {
                assert_eq!(budget_of(&quoted), None, "{quoted}");
            }
        }
        assert_eq!(budget_of("The disruption budget b needs 2"), None);
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
