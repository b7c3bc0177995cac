//! Random lives of a request: whatever happens, admission accepts what the machine writes, and no turn is cut
//! short.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use drydock_api::eviction_request::Requester;
use drydock_runtime::cache::PodPhase;
use proptest::prelude::*;

use super::tests::{A, B, advance, at, pod, request};
use super::*;

/// Something that happens to a request or its pod.
#[derive(Clone, Debug)]
enum Event {
    Pass(i64),
    Heartbeat,
    Complete,
    Withdraw,
    Ask,
    Delete,
    PodTerminates,
    PodEnds,
    PodGoes,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1..2000i64).prop_map(Event::Pass),
        3 => Just(Event::Heartbeat),
        2 => Just(Event::Complete),
        1 => Just(Event::Withdraw),
        1 => Just(Event::Ask),
        1 => Just(Event::Delete),
        1 => Just(Event::PodTerminates),
        1 => Just(Event::PodEnds),
        1 => Just(Event::PodGoes),
    ]
}

struct Life {
    request: EvictionRequest,
    pod: Option<Pod>,
    now: i64,
}

impl Life {
    fn target(&self) -> TargetPod<'_> {
        self.pod.as_ref().map_or(TargetPod::Absent, TargetPod::Present)
    }

    fn happen(&mut self, event: &Event) {
        let now = at(self.now);
        let active = self.request.active_interceptor().map(str::to_owned);
        let mut entries = self.request.status.interceptors.iter_mut();
        let entry = entries.find(|e| Some(&e.name) == active.as_ref() && e.completion_time.is_none());
        match event {
            Event::Pass(seconds) => self.now += seconds,
            Event::Heartbeat => {
                let due = |e: &&mut InterceptorStatus| {
                    e.heartbeat_time.is_none_or(|t| t.as_second() + 60 <= now.as_second())
                };
                if let Some(entry) = entry.filter(due) {
                    entry.start_time = entry.start_time.or(Some(now));
                    entry.heartbeat_time = Some(now);
                }
            }
            Event::Complete => entry.into_iter().for_each(|entry| entry.completion_time = Some(now)),
            Event::Withdraw => self.change_requesters(Vec::new()),
            Event::Ask if !self.request.is_finished() && !self.request.is_being_deleted() => {
                self.change_requesters(vec![Requester { name: "r.example.com".into() }]);
            }
            Event::Ask => {}
            // A finalizer keeps it.
            Event::Delete => self.request.metadata.deletion_timestamp = Some(now),
            Event::PodTerminates => {
                self.pod.iter_mut().for_each(|p| p.deletion_timestamp = Some(at(self.now + 30)))
            }
            Event::PodEnds => self.pod.iter_mut().for_each(|p| p.phase = PodPhase::Succeeded),
            Event::PodGoes => self.pod = None,
        }
    }

    fn change_requesters(&mut self, requesters: Vec<Requester>) {
        self.request.spec.requesters = requesters;
        self.request.metadata.generation += 1;
    }

    /// Lets the machine decide; `advance` checks what it writes by the rules of admission.
    fn step(&mut self) {
        let before = self.request.clone();
        let (target, now) = (self.pod.clone(), at(self.now));
        let target = target.as_ref().map_or(TargetPod::Absent, TargetPod::Present);
        let decision = advance(&mut self.request, target, now);
        if !decision.delete {
            let again = step(&self.request, self.target(), now, &Config::default());
            assert_eq!(again.status, None, "what is written is decided once");
            assert!(again.wake.is_none_or(|wake| wake > now), "it wakes at once, again and again");
        }
        self.check(&before);
    }

    fn check(&self, before: &EvictionRequest) {
        let (old, new) = (&before.status, &self.request.status);
        let names: Vec<&String> = new.target_interceptors.iter().map(|t| &t.name).collect();
        let turns: Vec<&String> = new.processed_interceptors.iter().chain(&new.active_interceptors).collect();
        assert!(names.starts_with(&turns), "turns go in order: {turns:?} of {names:?}");
        assert!(new.interceptors == old.interceptors || old.interceptors.is_empty(), "entries are not ours");
        let moved = old.active_interceptors != new.active_interceptors && !self.request.is_finished();
        if let Some(cut) = old.active_interceptors.first().filter(|_| moved) {
            let entry = before.interceptor(cut).unwrap();
            let last = entry.heartbeat_time.or(old.activation_time).unwrap();
            let silent = last.as_second() + 1200 <= at(self.now).as_second();
            assert!(silent || entry.completion_time.is_some(), "{cut} was passed over early");
        }
        assert!(!(self.request.is_evicted() && self.request.is_canceled()));
        assert!(!before.is_finished() || self.request.is_finished(), "the end is final");
        let gone = self.pod.as_ref().is_none_or(Pod::is_terminal);
        let unwanted = self.request.spec.requesters.is_empty() || self.request.is_being_deleted();
        assert!(
            !(gone || unwanted) || self.request.is_finished(),
            "it ends with its pod, its last requester, or its deletion"
        );
        assert!(!self.request.is_finished() || new.active_interceptors.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_machine_keeps_the_rules(
        events in prop::collection::vec(event(), 1..40), list in prop::sample::subsequence(vec![A, B], 0..=2),
    ) {
        let mut life = Life { request: request(), pod: Some(pod(&list)), now: 0 };
        life.step();
        for event in &events {
            life.happen(event);
            life.step();
        }
    }
}
