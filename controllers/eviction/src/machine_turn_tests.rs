//! The turns of a pod that is asked for again and again, beside a model that was written from the text alone: of the
//! built-in names only served ones have turns; each interceptor of a tenant has one turn, unless it was interrupted while it
//! worked, or within the first minute of the first request, and the pod has those of fifteen; one of the cluster has a turn in
//! each request; with a bound, the turns take no longer than that together; without one, nobody who reports is passed over.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use drydock_api::eviction_request::interceptors::{AllowedNames, IMPERATIVE_EVICTION, SURGE};
use drydock_api::eviction_request::transitions::turns_had;
use proptest::prelude::*;

use super::tests::{A, B, advance_with, at, pod, request};
use super::*;

const SILENCE: i64 = 1200;
const MOST_TURNS: usize = 15;
/// A built-in name that nobody serves, among the names that a tenant writes.
const UNSERVED: &str = "job.batch.k8s.io";
/// The place of a name of the cluster that a program serves.
const SERVED: usize = 20;
/// How long an interceptor has to report in the first request of a pod.
const FIRST_REPORT: i64 = 60;

fn config(max_interception: Option<i64>) -> Config {
    let max_interception = max_interception.map(|seconds| Duration::from_secs(seconds.try_into().unwrap()));
    Config { allowed: AllowedNames::default().served_by([SURGE]), max_interception, ..Config::default() }
}

/// What should happen, in the words of the issue.
struct TurnModel {
    max: Option<i64>,
    had: Vec<String>,
    /// Seconds that turns of earlier requests took.
    used: i64,
    is_first: bool,
    /// The present request: its interceptors, whose turn it is, and since when.
    targets: Vec<String>,
    turn: usize,
    made: i64,
    began: i64,
    sign: i64,
    has_begun: bool,
    has_completed: bool,
    ended: i64,
}

impl TurnModel {
    fn new(max: Option<i64>, names: &[String], now: i64) -> Self {
        let mut model = Self {
            max,
            had: Vec::new(),
            used: 0,
            is_first: true,
            targets: Vec::new(),
            turn: 0,
            made: now,
            began: now,
            sign: now,
            has_begun: false,
            has_completed: false,
            ended: now,
        };
        model.ask(names, now);
        model
    }

    fn ask(&mut self, names: &[String], now: i64) {
        let is_new = |name: &&String| *name != UNSERVED && !self.had.contains(name);
        let left = MOST_TURNS - self.had.len();
        let targets: Vec<String> = names.iter().filter(is_new).take(left).cloned().collect();
        let has_time = self.max.is_none_or(|max| self.used < max);
        self.targets = if has_time { targets } else { Vec::new() };
        (self.made, self.ended) = (now, now);
        self.begin(0, now);
    }

    fn begin(&mut self, turn: usize, now: i64) {
        (self.turn, self.began, self.sign) = (turn, now, now);
        (self.has_begun, self.has_completed) = (false, false);
        match self.targets.get(turn) {
            Some(name) if name == SURGE => {}
            Some(name) => self.had.push(name.clone()),
            None => self.ended = now,
        }
    }

    fn active(&self) -> &str {
        self.targets.get(self.turn).map_or(IMPERATIVE_EVICTION, String::as_str)
    }

    /// Time has passed, or somebody has reported.
    fn settle(&mut self, now: i64) {
        while self.turn < self.targets.len() {
            if self.max.is_some_and(|max| self.used + now - self.made >= max) {
                self.begin(self.targets.len(), now);
            } else if self.has_completed || now >= self.sign + SILENCE {
                self.begin(self.turn + 1, now);
            } else {
                return;
            }
        }
    }

    /// The turns that have been had, if the request ends now: who is interrupted while he works has not had his, nor who had
    /// no time to begin.
    fn had_now(&self, now: i64) -> Vec<String> {
        let is_own = self.targets.get(self.turn).is_some_and(|name| name != SURGE);
        let had_no_time = self.is_first && now < self.began + FIRST_REPORT;
        let is_interrupted = is_own && !self.has_completed && (self.has_begun || had_no_time);
        self.had[..self.had.len() - usize::from(is_interrupted)].to_vec()
    }

    /// Somebody deletes the request, and the pod is asked for again.
    fn ask_again(&mut self, names: &[String], now: i64) {
        self.had = self.had_now(now);
        if !self.targets.is_empty() {
            let end = if self.turn < self.targets.len() { now } else { self.ended };
            self.used += (end - self.made).max(1);
            self.is_first = false;
        }
        self.ask(names, now);
    }
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    Pass(i64),
    Heartbeat,
    Complete,
    /// The owner writes these names into the pod, and the request is deleted and made anew.
    DeleteRequest(Vec<usize>),
}

fn event() -> impl Strategy<Value = Event> {
    let names = prop::collection::vec(0..=SERVED, 0..10);
    prop_oneof![
        4 => (1..1500i64).prop_map(Event::Pass),
        2 => Just(Event::Heartbeat),
        2 => Just(Event::Complete),
        3 => names.prop_map(Event::DeleteRequest),
    ]
}

fn names(places: &[usize]) -> Vec<String> {
    let name = |place: &usize| match *place {
        0 => UNSERVED.to_owned(),
        SERVED => SURGE.to_owned(),
        own => format!("i{own}.example.com"),
    };
    let mut names: Vec<String> = Vec::new();
    for name in places.iter().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The shipping code: the machine, and what the controller does when a request is gone.
struct Drained {
    config: Config,
    request: EvictionRequest,
    pod: Pod,
}

impl Drained {
    fn new(max: Option<i64>, names: &[String]) -> Self {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut drained = Self { config: config(max), request: request(), pod: pod(&names) };
        drained.settle(0);
        drained
    }

    fn settle(&mut self, now: i64) {
        for _ in 0..20 {
            let target = TargetPod::Present(&self.pod);
            if advance_with(&mut self.request, target, at(now), &self.config).status.is_none() {
                return;
            }
        }
        panic!("it does not settle");
    }

    fn ask_again(&mut self, names: &[String], now: i64) {
        let turns = turns_had(&self.request, at(now));
        self.request = request();
        self.request.metadata.creation_timestamp = Some(at(now));
        self.request.status.earlier_turns = Some(turns).filter(|turns| !turns.is_empty());
        self.pod.interceptors = Some(names.to_vec());
    }

    /// The entry of the active interceptor, if it may report at this time.
    fn entry(&mut self) -> Option<&mut InterceptorStatus> {
        let active = self.request.active_interceptor()?.to_owned();
        let mut entries = self.request.status.interceptors.iter_mut();
        entries.find(|entry| entry.name == active && active != IMPERATIVE_EVICTION)
    }
}

fn live(max: Option<i64>, first: &[usize], events: &[Event]) {
    let mut now = 0;
    let mut present = names(first);
    let (mut drained, mut model) = (Drained::new(max, &present), TurnModel::new(max, &present, now));
    for event in events {
        match event {
            Event::Pass(seconds) => now += seconds,
            Event::Heartbeat => {
                if now >= model.sign + 60
                    && let Some(entry) = drained.entry()
                {
                    entry.start_time = entry.start_time.or(Some(at(now)));
                    entry.heartbeat_time = Some(at(now));
                    (model.sign, model.has_begun) = (now, true);
                }
            }
            Event::Complete => {
                if let Some(entry) = drained.entry() {
                    entry.completion_time = Some(at(now));
                    model.has_completed = true;
                }
            }
            Event::DeleteRequest(places) => {
                present = names(places);
                drained.ask_again(&present, now);
                model.ask_again(&present, now);
            }
        }
        drained.settle(now);
        model.settle(now);
        let had: Vec<String> = turns_had(&drained.request, at(now)).interceptors;
        assert_eq!(drained.request.active_interceptor(), Some(model.active()), "{event:?} at {now}");
        assert_eq!(had, model.had_now(now), "{event:?} at {now}");
    }
    let is_once = |name: &String| model.had.iter().filter(|had| *had == name).count() == 1;
    assert!(
        model.had.iter().all(is_once)
            && model.had.len() <= MOST_TURNS
            && !model.had.contains(&UNSERVED.to_owned())
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn turns_are_those_of_the_model_however_often_the_request_is_made_anew(
        events in prop::collection::vec(event(), 1..60), first in prop::collection::vec(0..=SERVED, 0..10),
        max in prop::option::of(1..6000i64),
    ) {
        live(max, &first, &events);
    }
}

/// Before the last of fifteen turns began, the owner deleted the request, and all began anew: hours, without end.
#[test]
fn a_request_that_is_deleted_before_each_last_turn_leads_to_the_eviction_all_the_same() {
    let first: Vec<usize> = (1..16).collect();
    let (mut drained, mut now) = (Drained::new(None, &names(&first)), 0);
    let mut turns = Vec::new();
    while drained.request.active_interceptor() != Some(IMPERATIVE_EVICTION) {
        turns.push(drained.request.active_interceptor().unwrap().to_owned());
        now += SILENCE;
        drained.settle(now);
        if turns.len() % 4 == 0 {
            drained.ask_again(&names(&first), now);
            drained.settle(now);
        }
    }
    assert!(turns.len() <= MOST_TURNS && now <= 15 * SILENCE, "{turns:?}");
}

/// The surge took its replica back with the request, and had no turn to make it again: the budget kept the pod.
#[test]
fn an_interceptor_of_the_cluster_that_has_completed_gets_its_turn_again_when_the_request_is_deleted() {
    let first = [SERVED, 1];
    let mut drained = Drained::new(None, &names(&first));
    drained.entry().unwrap().completion_time = Some(at(90));
    drained.settle(90);
    drained.settle(90 + SILENCE);
    assert_eq!(drained.request.active_interceptor(), Some(IMPERATIVE_EVICTION));
    drained.ask_again(&names(&first), 2000);
    drained.settle(2000);
    let targets: Vec<&str> = drained.request.status.target_interceptors.iter().map(|i| &*i.name).collect();
    assert_eq!(targets, [SURGE, IMPERATIVE_EVICTION], "the tenant's own has had its turn");
}

/// The one interceptor of a pod lost its only turn when its request went a moment after the turn had begun.
#[test]
fn an_interceptor_that_had_no_time_to_report_gets_its_turn_again_once() {
    let first = [1];
    let own = names(&first);
    let mut drained = Drained::new(None, &own);
    for (second, active) in [(1, own[0].as_str()), (2, IMPERATIVE_EVICTION)] {
        drained.ask_again(&own, second);
        drained.settle(second);
        assert_eq!(drained.request.active_interceptor(), Some(active), "at {second}");
    }
    let mut silent = Drained::new(None, &own);
    silent.ask_again(&own, FIRST_REPORT);
    silent.settle(FIRST_REPORT);
    assert_eq!(silent.request.active_interceptor(), Some(IMPERATIVE_EVICTION));
}

/// An interceptor that reports had no end.
#[test]
fn with_a_bound_an_interceptor_that_reports_is_passed_over_with_all_that_follow_and_its_owner_is_told() {
    let config = config(Some(1800));
    let (pod, mut request) = (pod(&[A, B]), request());
    let look = |request: &mut EvictionRequest, second| {
        advance_with(request, TargetPod::Present(&pod), at(second), &config)
    };
    look(&mut request, 0);
    assert_eq!(request.status.interception_deadline, Some(at(1800)));
    for second in [600, 1200, 1790] {
        request.status.interceptors[0].start_time = Some(at(600));
        request.status.interceptors[0].heartbeat_time = Some(at(second));
        let waits = look(&mut request, second);
        assert_eq!((waits.status, waits.wake), (None, Some(at(1800))));
    }
    let decision = look(&mut request, 1800);
    assert_eq!(request.active_interceptor(), Some(IMPERATIVE_EVICTION));
    assert_eq!(request.status.processed_interceptors, [A], "the second one has not begun");
    let [warning] = decision.warnings.as_slice() else { panic!("{:?}", decision.warnings) };
    assert!(warning.message.starts_with(&format!("{A} has not completed its turn")), "{}", warning.message);
    let all = format!("It is passed over with {B}, and the turn is imperative-eviction.k8s.io's");
    assert!(warning.message.ends_with(&all), "{}", warning.message);
}

/// The owner did not hear of interceptors that had no time left.
#[test]
fn interceptors_that_get_no_turn_because_the_time_of_all_is_over_are_named_in_one_warning() {
    let (pod, config) = (pod(&[A, B]), config(Some(600)));
    let look = |request: &mut EvictionRequest, second| {
        advance_with(request, TargetPod::Present(&pod), at(second), &config)
    };
    let told = |decision: &RequestDecision, names: &str| {
        let [warning] = decision.warnings.as_slice() else { panic!("{:?}", decision.warnings) };
        assert_eq!(warning.reason, reasons::INTERCEPTOR_TIMED_OUT);
        assert!(warning.message.starts_with(&format!("{names} had no turn: ")), "{}", warning.message);
    };
    told(&look(&mut request(), 700), &format!("{A}, {B}"));
    let mut begun = request();
    look(&mut begun, 0);
    begun.status.interceptors[0].completion_time = Some(at(600));
    told(&look(&mut begun, 600), B);
    assert_eq!(begun.active_interceptor(), Some(IMPERATIVE_EVICTION));
}

#[test]
fn without_a_bound_an_interceptor_that_reports_keeps_its_turn_and_no_field_says_otherwise() {
    let (pod, mut request) = (pod(&[A]), request());
    for second in (0..100_000).step_by(1000) {
        advance_with(&mut request, TargetPod::Present(&pod), at(second), &config(None));
        request.status.interceptors[0].start_time = Some(at(1000));
        request.status.interceptors[0].heartbeat_time = Some(at(second));
    }
    assert_eq!(request.active_interceptor(), Some(A));
    assert_eq!(request.status.interception_deadline, None);
}

/// An API server of an earlier version drops the bound: it was written again and again, and no turn passed on.
#[test]
fn a_turn_that_has_ended_passes_on_together_with_a_new_bound() {
    let pod = pod(&[A]);
    for (second, max) in [(10, 600), (SILENCE, 100_000)] {
        let mut request = request();
        advance_with(&mut request, TargetPod::Present(&pod), at(0), &config(None));
        let dropped = step(&request, TargetPod::Present(&pod), at(5), &config(Some(max)));
        assert_eq!(dropped.wake, Some(at(max.min(SILENCE))), "no change of the request wakes it");
        request.status.interceptors[0].completion_time = (second < SILENCE).then_some(at(second));
        advance_with(&mut request, TargetPod::Present(&pod), at(second), &config(Some(max)));
        assert_eq!(request.active_interceptor(), Some(IMPERATIVE_EVICTION), "at {second}");
        assert_eq!(request.status.interception_deadline, Some(at(max)));
    }
}

/// An admin sets the flag for a drain that takes too long, or takes it back.
#[test]
fn a_bound_that_is_set_or_taken_back_holds_for_requests_that_are_there() {
    let (pod, mut request) = (pod(&[A]), request());
    let mut look =
        |second, max| advance_with(&mut request, TargetPod::Present(&pod), at(second), &config(max)).status;
    let end = |status: Option<EvictionRequestStatus>| status.map(|status| status.interception_deadline);
    assert_eq!(end(look(0, None)), Some(None));
    assert_eq!(end(look(10, Some(600))), Some(Some(at(600))));
    assert_eq!(end(look(11, Some(600))), None);
    assert_eq!(end(look(12, None)), Some(None));
    assert_eq!(end(look(700, Some(600))), Some(Some(at(600))));
    let passed = look(700, Some(600)).unwrap();
    assert_eq!(passed.active_interceptors, [IMPERATIVE_EVICTION]);
}
