//! Which failures of a watch are logged.

use kube::runtime::watcher::{self, Event};

use crate::{is_unreachable, with_causes};

/// The failures of one watch. Of consecutive failures, the first is logged, and each whose text differs from the last.
/// Failures without a server are not logged here: the client logs them once for all watches.
#[derive(Debug, Default)]
pub struct WatchFailures {
    /// The text of the failure that was logged last; `None` while the watch works.
    told: Option<String>,
}

impl WatchFailures {
    /// Records the next event of the watch. Returns the text of a failure that should be logged.
    pub fn take_in<K>(&mut self, event: &watcher::Result<Event<K>>) -> Option<String> {
        match event {
            // `Init` comes before each attempt to list: the server has not answered yet.
            Ok(Event::Init) => None,
            Ok(_) => {
                self.told = None;
                None
            }
            Err(error) if is_of_server(error) => {
                let words = with_causes(error);
                let is_news = self.told.as_ref() != Some(&words);
                is_news.then(|| self.told.insert(words).clone())
            }
            Err(_) => None,
        }
    }
}

/// Whether the failure is that of a server which was reached.
fn is_of_server(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => !is_unreachable(error),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::Node;
    use kube::core::Status;

    use super::*;
    use crate::NoAnswer;

    fn refused(words: &str) -> watcher::Result<Event<Node>> {
        let status = Status::failure(words, "Forbidden").with_code(403).boxed();
        Err(watcher::Error::InitialListFailed(kube::Error::Api(status)))
    }

    /// Regression: kube announces each attempt to list, so a permanent 403 was logged at each attempt.
    #[test]
    fn a_refusal_that_stays_is_told_once() {
        let mut failures = WatchFailures::default();
        assert!(failures.take_in(&refused("no")).is_some_and(|words| words.ends_with(": no")));
        for _ in 0..3 {
            assert_eq!(failures.take_in(&Ok(Event::<Node>::Init)), None);
            assert_eq!(failures.take_in(&refused("no")), None);
        }
        assert!(failures.take_in(&refused("still no")).is_some());
    }

    #[test]
    fn a_refusal_after_the_watch_has_worked_is_told_again() {
        let mut failures = WatchFailures::default();
        assert!(failures.take_in(&refused("no")).is_some());
        assert_eq!(failures.take_in(&Ok(Event::<Node>::InitDone)), None);
        assert!(failures.take_in(&refused("no")).is_some());
    }

    #[test]
    fn a_server_that_is_not_reached_is_left_to_the_client_and_ends_no_row() {
        let mut failures = WatchFailures::default();
        let away = || -> watcher::Result<Event<Node>> {
            Err(watcher::Error::WatchFailed(kube::Error::Service("connection refused".into())))
        };
        assert_eq!(failures.take_in(&away()), None);
        assert!(failures.take_in(&refused("no")).is_some());
        assert_eq!(failures.take_in(&away()), None);
        assert_eq!(failures.take_in(&refused("no")), None);
    }

    #[test]
    fn a_watch_that_has_no_answer_is_told_of() {
        let silent = NoAnswer { request: "GET /a".into(), waited: Duration::from_secs(75), has_begun: false };
        let failed: watcher::Result<Event<Node>> =
            Err(watcher::Error::WatchStartFailed(kube::Error::Service(Box::new(silent))));
        let told = WatchFailures::default().take_in(&failed);
        assert!(told.is_some_and(|words| words.contains("no answer within 75 s")));
    }
}
