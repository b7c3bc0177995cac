//! The events that wait to be written: bounded, and fair between namespaces, so that a flood of events in one
//! namespace loses some of its own and delays no other namespace.

use std::collections::{BTreeMap, VecDeque};

use super::RecordedEvent;

/// Most events of one namespace that wait. The oldest stay, because they say how something began.
const OF_ONE: usize = 100;
/// Most events of all namespaces that wait. Events of cluster-scoped objects, which no tenant causes, are not
/// among them: they have [`OF_ONE`] for themselves.
const OF_ALL: usize = 1000;

/// Events by the namespace of their object; those of cluster-scoped objects stand under the empty name.
#[derive(Default)]
pub(super) struct EventBacklog {
    waiting: BTreeMap<String, VecDeque<RecordedEvent>>,
    /// Namespaces that have events, the next one to be written first.
    turns: VecDeque<String>,
    /// How many events of namespaced objects wait.
    namespaced: usize,
}

impl EventBacklog {
    /// Adds an event. If the backlog is full, returns the event that is dropped, which may be the new one.
    pub(super) fn push(&mut self, event: RecordedEvent) -> Option<RecordedEvent> {
        let namespace = event.regarding.namespace.clone();
        let mine = self.waiting.get(&namespace).map_or(0, VecDeque::len);
        if mine >= OF_ONE {
            return Some(event);
        }
        let gone = match namespace.is_empty() || self.namespaced < OF_ALL {
            true => None,
            // The newest event of the namespace with the most events makes room, if that has at least two
            // more than this one.
            false => match self.longest().filter(|(_, most)| *most > mine + 1) {
                Some((longest, _)) => self.drop_newest(&longest),
                None => return Some(event),
            },
        };
        self.namespaced += usize::from(!namespace.is_empty());
        let queue = self.waiting.entry(namespace.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(namespace);
        }
        queue.push_back(event);
        gone
    }

    /// Takes the next event; namespaces take turns.
    pub(super) fn pop(&mut self) -> Option<RecordedEvent> {
        let namespace = self.turns.pop_front()?;
        let queue = self.waiting.get_mut(&namespace)?;
        let event = queue.pop_front();
        match queue.is_empty() {
            true => drop(self.waiting.remove(&namespace)),
            false => self.turns.push_back(namespace.clone()),
        }
        self.namespaced -= usize::from(!namespace.is_empty() && event.is_some());
        event
    }

    fn longest(&self) -> Option<(String, usize)> {
        let namespaced = self.waiting.iter().filter(|(namespace, _)| !namespace.is_empty());
        let longest = namespaced.max_by_key(|(_, queue)| queue.len());
        longest.map(|(namespace, queue)| (namespace.clone(), queue.len()))
    }

    /// Drops the newest event of a namespace that has more than one.
    fn drop_newest(&mut self, namespace: &str) -> Option<RecordedEvent> {
        let event = self.waiting.get_mut(namespace)?.pop_back()?;
        self.namespaced -= 1;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Regarding, Severity};
    use super::*;

    fn event(namespace: &str, message: usize) -> RecordedEvent {
        let regarding = Regarding {
            api_version: "v1".to_owned(),
            kind: "Pod",
            namespace: namespace.to_owned(),
            name: "p".to_owned(),
            uid: "u".to_owned(),
            resource_version: "1".to_owned(),
        };
        let (message, time) = (message.to_string(), jiff::Timestamp::UNIX_EPOCH);
        RecordedEvent { regarding, related: None, severity: Severity::Normal, reason: "R", message, time }
    }

    fn all(backlog: &mut EventBacklog) -> Vec<(String, String)> {
        std::iter::from_fn(|| backlog.pop()).map(|event| (event.regarding.namespace, event.message)).collect()
    }

    /// The queue was one for all: a thousand events of one tenant, and those of a drain were dropped, or came
    /// after them.
    #[test]
    fn a_namespace_with_many_events_delays_and_displaces_no_other() {
        let mut backlog = EventBacklog::default();
        let dropped = (0..10_000).filter(|n| backlog.push(event("loud", *n)).is_some()).count();
        assert_eq!(dropped, 10_000 - OF_ONE);
        assert!(backlog.push(event("quiet", 0)).is_none());
        assert!(backlog.push(event("", 0)).is_none());
        let written = all(&mut backlog);
        let first = written.iter().take(3).map(|(namespace, _)| namespace.as_str()).collect::<Vec<_>>();
        assert_eq!((first, written.len()), (vec!["loud", "quiet", ""], OF_ONE + 2));
    }

    #[test]
    fn many_namespaces_that_are_full_make_room_for_another_and_for_what_is_in_none() {
        let mut backlog = EventBacklog::default();
        for n in 0..OF_ALL * 2 {
            backlog.push(event(&format!("loud-{}", n % 15), n));
        }
        assert_eq!(backlog.namespaced, OF_ALL);
        for n in 0..OF_ONE / 2 {
            let gone = backlog.push(event("quiet", n)).map(|gone| gone.regarding.namespace);
            assert!(gone.is_some_and(|gone| gone.starts_with("loud-")));
            assert!(backlog.push(event("", n)).is_none());
        }
        assert_eq!(backlog.namespaced, OF_ALL);
        let written = all(&mut backlog);
        let count = |of: &str| written.iter().filter(|(namespace, _)| namespace == of).count();
        assert_eq!((count("quiet"), count(""), written.len()), (OF_ONE / 2, OF_ONE / 2, OF_ALL + OF_ONE / 2));
        assert_eq!((backlog.namespaced, backlog.waiting.len(), backlog.turns.len()), (0, 0, 0));
    }

    #[test]
    fn events_of_a_namespace_are_written_in_their_order() {
        let mut backlog = EventBacklog::default();
        for n in 0..6 {
            backlog.push(event(["a", "b"][n % 2], n));
        }
        let written = all(&mut backlog).into_iter().map(|(_, message)| message).collect::<Vec<_>>();
        assert_eq!(written, ["0", "1", "2", "3", "4", "5"]);
    }

    #[test]
    fn memory_is_bounded_by_events_whatever_the_namespaces_are_called() {
        let mut backlog = EventBacklog::default();
        for n in 0..5 * OF_ALL {
            backlog.push(event(&n.to_string(), n));
        }
        assert_eq!(
            (backlog.namespaced, backlog.waiting.len(), backlog.turns.len()),
            (OF_ALL, OF_ALL, OF_ALL)
        );
    }
}
