//! The events that wait to be written: bounded, and fair between lanes, so that a flood of events in one lane loses some of its
//! own and delays no other lane. Events of namespaced objects have a lane for each namespace, those of maintenances one for each
//! creator, those of nodes and of other cluster-scoped objects one for each object. These three groups of lanes have their own
//! room, and take turns.

use std::collections::{BTreeMap, VecDeque};

use drydock_api::node_maintenance::NodeMaintenance;

use super::{RecordedEvent, Regarding};
use crate::cache::Cacheable;

/// Most events of one lane that wait. The oldest stay, because they say how something began.
const OF_ONE: usize = 100;
/// Most events of all lanes of a group that wait, but for the group of nodes.
const OF_ALL: usize = 1000;
/// The same for nodes and other cluster-scoped objects: one maintenance may cause an event of each node, and a cluster has at
/// most so many nodes.
const OF_NODES: usize = 5000;

/// The events that wait.
#[derive(Default)]
pub(super) struct EventBacklog {
    namespaces: EventLanes,
    creators: EventLanes,
    objects: EventLanes,
    /// How many events were taken: groups take turns.
    taken: usize,
}

impl EventBacklog {
    /// Adds an event. If the backlog is full, returns the event that is dropped, which may be the new one.
    pub(super) fn push(&mut self, event: RecordedEvent) -> Option<RecordedEvent> {
        let Regarding { kind, namespace, creator, name, .. } = &event.regarding;
        let (lanes, lane, most) = match (namespace.is_empty(), *kind) {
            (false, _) => (&mut self.namespaces, namespace.clone(), OF_ALL),
            (true, NodeMaintenance::KIND) => (&mut self.creators, creator.clone(), OF_ALL),
            (true, _) => (&mut self.objects, name.clone(), OF_NODES),
        };
        lanes.push(lane, event, most)
    }

    /// Takes the next event; groups take turns, and in each its lanes.
    pub(super) fn pop(&mut self) -> Option<RecordedEvent> {
        let mut groups = [&mut self.namespaces, &mut self.creators, &mut self.objects];
        let first = self.taken % groups.len();
        groups.rotate_left(first);
        let event = groups.into_iter().find_map(EventLanes::pop)?;
        self.taken = self.taken.wrapping_add(1);
        Some(event)
    }
}

/// A group of lanes, by their names.
#[derive(Default)]
struct EventLanes {
    waiting: BTreeMap<String, VecDeque<RecordedEvent>>,
    /// Lanes that have events, the next one to be written first.
    turns: VecDeque<String>,
    /// How many events wait.
    len: usize,
}

impl EventLanes {
    fn push(&mut self, lane: String, event: RecordedEvent, most_of_all: usize) -> Option<RecordedEvent> {
        let mine = self.waiting.get(&lane).map_or(0, VecDeque::len);
        let gone = if mine >= OF_ONE {
            match event.regarding.comes_first.then(|| self.drop_later(&lane)).flatten() {
                None => return Some(event),
                gone => gone,
            }
        } else if self.len < most_of_all {
            None
        } else {
            // The newest event of the lane with the most events makes room, if that has at least two more than this one.
            match self.longest().filter(|(_, most)| *most > mine + 1) {
                Some((longest, _)) => self.drop_newest(&longest),
                None => return Some(event),
            }
        };
        self.len += 1;
        let queue = self.waiting.entry(lane.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(lane);
        }
        queue.push_back(event);
        gone
    }

    fn pop(&mut self) -> Option<RecordedEvent> {
        let lane = self.turns.pop_front()?;
        let queue = self.waiting.get_mut(&lane)?;
        let event = queue.pop_front()?;
        match queue.is_empty() {
            true => drop(self.waiting.remove(&lane)),
            false => self.turns.push_back(lane),
        }
        self.len -= 1;
        Some(event)
    }

    fn longest(&self) -> Option<(String, usize)> {
        let longest = self.waiting.iter().max_by_key(|(_, queue)| queue.len());
        longest.map(|(lane, queue)| (lane.clone(), queue.len()))
    }

    /// Drops the newest event of a full lane that does not come first.
    fn drop_later(&mut self, lane: &str) -> Option<RecordedEvent> {
        let queue = self.waiting.get_mut(lane)?;
        let at = queue.iter().rposition(|event| !event.regarding.comes_first)?;
        let event = queue.remove(at)?;
        self.len -= 1;
        Some(event)
    }

    /// Drops the newest event of a lane that has more than one.
    fn drop_newest(&mut self, lane: &str) -> Option<RecordedEvent> {
        let event = self.waiting.get_mut(lane)?.pop_back()?;
        self.len -= 1;
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
            creator: String::new(),
            comes_first: false,
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
        assert_eq!((first, written.len()), (vec!["loud", "", "quiet"], OF_ONE + 2));
    }

    #[test]
    fn many_namespaces_that_are_full_make_room_for_another_and_for_what_is_in_none() {
        let mut backlog = EventBacklog::default();
        for n in 0..OF_ALL * 2 {
            backlog.push(event(&format!("loud-{}", n % 15), n));
        }
        assert_eq!(backlog.namespaces.len, OF_ALL);
        for n in 0..OF_ONE / 2 {
            let gone = backlog.push(event("quiet", n)).map(|gone| gone.regarding.namespace);
            assert!(gone.is_some_and(|gone| gone.starts_with("loud-")));
            assert!(backlog.push(event("", n)).is_none());
        }
        assert_eq!(backlog.namespaces.len, OF_ALL);
        let written = all(&mut backlog);
        let count = |of: &str| written.iter().filter(|(namespace, _)| namespace == of).count();
        assert_eq!((count("quiet"), count(""), written.len()), (OF_ONE / 2, OF_ONE / 2, OF_ALL + OF_ONE / 2));
        for group in [&backlog.namespaces, &backlog.creators, &backlog.objects] {
            assert_eq!((group.len, group.waiting.len(), group.turns.len()), (0, 0, 0));
        }
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
        let group = &backlog.namespaces;
        assert_eq!((group.len, group.waiting.len(), group.turns.len()), (OF_ALL, OF_ALL, OF_ALL));
    }
    fn about(kind: &'static str, creator: &str, name: &str, comes_first: bool) -> RecordedEvent {
        let mut event = event("", 0);
        let regarding = &mut event.regarding;
        (regarding.kind, regarding.comes_first) = (kind, comes_first);
        (regarding.creator, regarding.name) = (creator.to_owned(), name.to_owned());
        event
    }

    fn names(backlog: &mut EventBacklog) -> Vec<String> {
        std::iter::from_fn(|| backlog.pop()).map(|event| event.regarding.name).collect()
    }

    /// All maintenances and nodes had one queue of a hundred events: with a thousand maintenances of one account, those of
    /// another's were dropped.
    #[test]
    fn a_creator_with_many_maintenances_delays_and_displaces_no_event_of_another() {
        let mut backlog = EventBacklog::default();
        for n in 0..10 * OF_ONE {
            backlog.push(about(NodeMaintenance::KIND, "loud", &format!("m{n}"), true));
            backlog.push(about("Node", "", "busy", false));
        }
        assert!(backlog.push(about(NodeMaintenance::KIND, "quiet", "mine", false)).is_none());
        assert!(backlog.push(about("Node", "", "other", false)).is_none());
        let written = names(&mut backlog);
        let place = |name: &str| written.iter().position(|written| written == name);
        assert!(place("mine") < Some(6) && place("other") < Some(6), "{written:?}");
        assert_eq!(written.len(), 2 * OF_ONE + 2);
    }

    /// A thousand nodes had one event each, of one maintenance of them all, and the first event of any other was dropped.
    #[test]
    fn a_maintenance_of_thousands_of_nodes_displaces_no_event_of_another_node() {
        let mut backlog = EventBacklog::default();
        for n in 0..OF_NODES - 1 {
            assert!(backlog.push(about("Node", "", &format!("n{n}"), false)).is_none());
        }
        assert!(backlog.push(about("Node", "", "other", false)).is_none());
        let again = backlog.push(about("Node", "", "other", false)).map(|gone| gone.regarding.name);
        assert_eq!((again.as_deref(), backlog.objects.len), (Some("other"), OF_NODES));
    }

    #[test]
    fn events_of_a_maintenance_that_drains_displace_others_of_its_creator() {
        let mut backlog = EventBacklog::default();
        for n in 0..OF_ONE {
            backlog.push(about(NodeMaintenance::KIND, "ann", &format!("idle-{n}"), n == 0));
        }
        let gone = |backlog: &mut EventBacklog, name: &str, first| {
            backlog.push(about(NodeMaintenance::KIND, "ann", name, first)).map(|gone| gone.regarding.name)
        };
        assert_eq!(gone(&mut backlog, "late", false).as_deref(), Some("late"));
        assert_eq!(gone(&mut backlog, "drain", true), Some(format!("idle-{}", OF_ONE - 1)));
        let written = names(&mut backlog);
        assert_eq!((written.len(), written.last().map(String::as_str)), (OF_ONE, Some("drain")));
        let mut backlog = EventBacklog::default();
        for n in 0..OF_ONE {
            backlog.push(about(NodeMaintenance::KIND, "ann", &format!("drain-{n}"), true));
        }
        assert_eq!(gone(&mut backlog, "one-more", true).as_deref(), Some("one-more"));
        assert_eq!(backlog.creators.len, OF_ONE);
    }
}
