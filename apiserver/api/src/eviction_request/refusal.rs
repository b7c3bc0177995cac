//! The message with which imperative eviction says that the host refuses (KEP-4563, Eviction): how it is written, and how
//! others quote it. It is for people: programs read `blocked`.

use crate::text::quoted;

/// The words of KEP-4563, behind the cause.
const RETRIES: &str = ". Could not evict a pod due to failing eviction requests, number of retries: ";
const BUDGET: &str = "PodDisruptionBudget ";
const SEVERAL: &str = "The pod is covered by more than one PodDisruptionBudget";

/// What refuses to let a pod be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBy {
    /// One PodDisruptionBudget, or that there are several.
    Budget,
    /// An admission webhook or policy.
    Admission,
    /// The host for another reason: authorization, an invalid object.
    ApiServer,
}

/// The message of an eviction that was refused so often, the last time by this and for that reason, which comes first.
pub fn message(retries: u32, by: RefusedBy, why: &str) -> String {
    format!("{}{RETRIES}{retries}", cause(by, why))
}

/// What refuses and for which reason. Words of others are quoted.
pub fn cause(by: RefusedBy, why: &str) -> String {
    match by {
        RefusedBy::Budget => why.trim_end_matches('.').to_owned(),
        RefusedBy::Admission => format!("An admission webhook or policy refused: {}", quoted(why)),
        RefusedBy::ApiServer => format!("The API server refused: {}", quoted(why)),
    }
}

/// A [`message`] without the number of retries, which rises while nothing else changes. Any other text stays as it is.
pub fn without_retries(message: &str) -> &str {
    match message.rsplit_once(RETRIES) {
        Some((why, retries)) if retries.bytes().all(|b| b.is_ascii_digit()) => why,
        _ => message,
    }
}

/// What one budget refuses, as in `PodDisruptionBudget "zero" allows 0 disruptions`: its name may be `never`.
pub fn by_budget(name: &str, why: &str) -> String {
    format!("{BUDGET}\"{name}\" {why}")
}

/// That several budgets cover a pod; with the names of two, if these are known.
pub fn by_several(names: Option<(&str, &str)>) -> String {
    let which =
        names.map_or_else(String::new, |(one, other)| format!(" (\"{one}\" and \"{other}\" at least)"));
    format!("{SEVERAL}{which}, which the eviction API does not support")
}

/// The name of the budget in a message that quotes [`by_budget`]; none in one that quotes [`by_several`].
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
        let one = by_budget("zero", "allows 0 disruptions");
        for quoted in [one.clone(), message(7, RefusedBy::Budget, &one)] {
            assert_eq!(budget_of(&quoted), Some("zero"), "{quoted}");
        }
        for names in [None, Some(("a", "b"))] {
            let several = by_several(names);
            for quoted in [several.clone(), message(7, RefusedBy::Budget, &several)] {
                assert_eq!(budget_of(&quoted), None, "{quoted}");
            }
        }
        assert_eq!(budget_of("The disruption budget b needs 2"), None);
    }

    #[test]
    fn the_number_of_retries_is_left_out_and_nothing_else() {
        for by in [RefusedBy::Budget, RefusedBy::Admission, RefusedBy::ApiServer] {
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
