//! The message with which imperative eviction says that the host refuses (KEP-4563, Eviction): written and read here alone,
//! so that a name in it, which is a tenant's choice, is never taken for what refuses.

/// KEP-4563's words; how often, and why, follow.
const FAILING: &str = "Could not evict a pod due to failing eviction requests, number of retries: ";
const ADMISSION: &str = "an admission webhook or policy refused: ";
const API_SERVER: &str = "the API server refused: ";

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

/// A message, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// How often the eviction has been refused; 0 if the number is unreadable.
    pub retries: u32,
    /// What refuses, if that is known.
    pub by: Option<RefusedBy>,
}

/// The message of an eviction that was refused so often, the last time by this and for that reason.
pub fn message(retries: u32, why: Option<(RefusedBy, &str)>) -> String {
    match why {
        None => format!("{FAILING}{retries}"),
        Some((by, why)) => format!("{FAILING}{retries}: {}{why}", by.prefix()),
    }
}

/// Reads a message; none if it is about something else.
pub fn read(message: &str) -> Option<Refusal> {
    let rest = message.strip_prefix(FAILING)?;
    let (retries, why) = rest.split_once(": ").unwrap_or((rest, ""));
    let by = [RefusedBy::Admission, RefusedBy::ApiServer, RefusedBy::Budget];
    let by = by.into_iter().find(|by| !why.is_empty() && why.starts_with(by.prefix()));
    Some(Refusal { retries: retries.parse().unwrap_or_default(), by })
}

impl RefusedBy {
    /// What is written before the reason. The reason of a budget begins otherwise than any of these.
    fn prefix(self) -> &'static str {
        match self {
            Self::Budget => "",
            Self::Admission => ADMISSION,
            Self::ApiServer => API_SERVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for by in [RefusedBy::Budget, RefusedBy::Admission, RefusedBy::ApiServer] {
            let told = message(7, Some((by, "because")));
            assert_eq!(read(&told), Some(Refusal { retries: 7, by: Some(by) }), "{told}");
        }
        assert_eq!(read(&message(7, None)), Some(Refusal { retries: 7, by: None }));
        assert_eq!(read("The pod is terminating."), None);
    }

    #[test]
    fn a_number_that_cannot_be_read_counts_as_none() {
        for rest in ["", "99999999999999999999", "x: y"] {
            assert_eq!(read(&format!("{FAILING}{rest}")).map(|refusal| refusal.retries), Some(0), "{rest}");
        }
    }

    /// A budget called `webhook` was shown as an admission webhook.
    #[test]
    fn names_of_budgets_do_not_say_what_refuses() {
        for name in ["webhook", "an-admission-webhook", "validating-admission-policy"] {
            let told = message(1, Some((RefusedBy::Budget, &format!("PodDisruptionBudget {name} allows 0"))));
            assert_eq!(read(&told).and_then(|refusal| refusal.by), Some(RefusedBy::Budget));
        }
    }
}
