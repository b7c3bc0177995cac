//! Which failures of a watch are worth a line.

use kube::runtime::watcher::{self, Event};

use crate::{is_unreachable, with_causes};

/// The failures of one watch. Of failures in a row the first is worth a line, and each that says something else. One where
/// no server answered is not: the client tells of that, once for all watches.
#[derive(Debug, Default)]
pub struct WatchFailures {
    /// The words of the failure that was told last, while the watch fails.
    told: Option<String>,
}

impl WatchFailures {
    /// Takes in how the watch went on. Returns the words of the failure, if it is worth a line.
    pub fn take_in<K>(&mut self, event: &watcher::Result<Event<K>>) -> Option<String> {
        match event {
            // It only announces a list, before each attempt; the server has not answered yet.
            Ok(Event::Init) => None,
            Ok(_) => {
                self.told = None;
                None
            }
            Err(error) if is_answer(error) => {
                let words = with_causes(error);
                let is_news = self.told.as_ref() != Some(&words);
                is_news.then(|| self.told.insert(words).clone())
            }
            Err(_) => None,
        }
    }
}

/// Whether a server answered with the failure.
fn is_answer(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => !is_unreachable(error),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use kube::core::Status;

    use super::*;

    fn refused(words: &str) -> watcher::Result<Event<Node>> {
        let status = Status::failure(words, "Forbidden").with_code(403).boxed();
        Err(watcher::Error::InitialListFailed(kube::Error::Api(status)))
    }

    /// kube announces each new attempt at a list: a permanent 403 was a warning at each of them.
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
    fn a_server_that_does_not_answer_is_left_to_the_client_and_ends_no_row() {
        let mut failures = WatchFailures::default();
        let away = || -> watcher::Result<Event<Node>> {
            Err(watcher::Error::WatchFailed(kube::Error::Service("connection refused".into())))
        };
        assert_eq!(failures.take_in(&away()), None);
        assert!(failures.take_in(&refused("no")).is_some());
        assert_eq!(failures.take_in(&away()), None);
        assert_eq!(failures.take_in(&refused("no")), None);
    }
}
