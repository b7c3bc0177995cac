//! The state of a request and its pod. Times are ages in ticks, and the oldest age stands for all beyond it: a deadline is
//! two ticks, so that an age is 'now', 'in time' or 'too late'.

use std::time::Duration;

use drydock_api::eviction_request::{
    CANCELED, EVICTED, EvictionRequest, EvictionTarget, Interceptor, InterceptorStatus, LocalPodReference,
    REASON_DELETED, REASON_NO_REQUESTERS, Requester,
};
use drydock_api::metav1::find_condition;
use drydock_eviction::Config;
use drydock_runtime::Pod;
use drydock_runtime::cache::PodPhase;
use jiff::Timestamp;

/// Seconds of a tick.
const TICK: i64 = 600;
/// The greatest age.
const OLD: u8 = 2;
/// The interceptors in the order of their turns; the last is the default one.
pub const INTERCEPTORS: [&str; 3] = ["a.example.com", "b.example.com", "imperative-eviction.k8s.io"];
/// The present of every step.
pub const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// Deadlines and retentions of one or two ticks.
pub fn config() -> Config {
    let ticks = |count: u64| Duration::from_secs(count * 600);
    Config {
        heartbeat_deadline: ticks(2),
        retention: Some(ticks(2)),
        canceled_grace: ticks(1),
        ..Config::default()
    }
}

/// A request as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// How many of the two requesters are in it.
    pub requesters: u8,
    /// Whether it is being deleted, and kept by a finalizer.
    pub deleting: bool,
    /// Whether it has targets.
    pub begun: bool,
    /// Index of the active interceptor.
    pub active: Option<u8>,
    /// How many interceptors have been active and are not any more.
    pub processed: u8,
    /// Age of the last turn's beginning.
    pub activation: u8,
    /// What the interceptors reported.
    pub entries: [Entry; 3],
    /// How it ended, and the age of the end.
    pub end: Option<(End, u8)>,
    /// The value of its label.
    pub label: u8,
    /// Whether the status is of the latest generation.
    pub observed: bool,
}

/// What an interceptor reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Age of the heartbeat. Only that of the active one matters.
    pub heartbeat: Option<u8>,
    /// Whether it has a completionTime.
    pub completed: bool,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    Evicted,
    NoRequesters,
    Deleted,
    Invalid,
}

/// The pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PodState {
    Running {
        label: u8,
    },
    /// With the ticks of its grace period that are left.
    Terminating {
        label: u8,
        grace: u8,
    },
    Terminal {
        label: u8,
    },
    /// There is none of this name.
    Gone,
    /// There is another one of its name.
    Replaced,
}

impl PodState {
    /// The pod as the step gets it; none if there is no pod of this UID.
    pub fn object(self) -> Option<Pod> {
        let (label, phase, grace) = match self {
            PodState::Running { label } => (label, PodPhase::Running, None),
            PodState::Terminating { label, grace } => (label, PodPhase::Running, Some(grace)),
            PodState::Terminal { label } => (label, PodPhase::Succeeded, None),
            PodState::Gone | PodState::Replaced => return None,
        };
        Some(Pod {
            name: "p".into(),
            namespace: "ns".into(),
            uid: "uid".into(),
            labels: [("app".into(), label.to_string())].into(),
            interceptors: Some(INTERCEPTORS[..2].iter().map(|name| (*name).to_owned()).collect()),
            phase,
            deletion_timestamp: grace.map(|ticks| ago(0) + Duration::from_secs(600 * u64::from(ticks))),
            ..Pod::default()
        })
    }

    /// Whether the pod still has to leave.
    pub fn is_there(self) -> bool {
        matches!(self, PodState::Running { .. } | PodState::Terminating { .. })
    }

    /// The pod a tick later.
    pub fn older(self) -> Self {
        match self {
            PodState::Terminating { label, grace } => {
                PodState::Terminating { label, grace: grace.saturating_sub(1) }
            }
            other => other,
        }
    }
}

impl Request {
    /// A request that was made just now.
    pub fn new(requesters: u8, label: u8) -> Self {
        Self {
            requesters,
            deleting: false,
            begun: false,
            active: None,
            processed: 0,
            activation: 0,
            entries: [Entry::default(); 3],
            end: None,
            label,
            observed: false,
        }
    }

    /// The object that the step and admission get.
    pub fn object(&self) -> EvictionRequest {
        let mut object = EvictionRequest::named("ns", "uid");
        object.metadata.generation = 2;
        object.metadata.creation_timestamp = Some(ago(OLD));
        object.metadata.labels = [("app".into(), self.label.to_string())].into();
        if self.deleting {
            object.metadata.deletion_timestamp = Some(NOW);
            object.metadata.finalizers = vec!["veto.example.com/stay".into()];
        }
        let pod = LocalPodReference { name: "p".into(), uid: "uid".into() };
        object.spec.target = EvictionTarget { pod: Some(pod) };
        let requester = |index| Requester { name: format!("r{index}.example.com") };
        object.spec.requesters = (0..self.requesters).map(requester).collect();
        let status = &mut object.status;
        status.observed_generation = if self.observed { 2 } else { 1 };
        if self.begun {
            status.target_interceptors =
                INTERCEPTORS.iter().map(|name| Interceptor { name: (*name).to_owned() }).collect();
            status.interceptors = INTERCEPTORS.iter().zip(&self.entries).map(Entry::object).collect();
            status.activation_time = Some(ago(self.activation));
            status.pod_info = Some(Default::default());
        }
        let names =
            |range: std::ops::Range<u8>| range.map(|i| INTERCEPTORS[usize::from(i)].to_owned()).collect();
        status.processed_interceptors = names(0..self.processed);
        status.active_interceptors = self.active.map(|i| names(i..i + 1)).unwrap_or_default();
        if let Some((end, age)) = self.end {
            let (type_, reason) = match end {
                End::Evicted => (EVICTED, "PodDeleted"),
                End::NoRequesters => (CANCELED, REASON_NO_REQUESTERS),
                End::Deleted => (CANCELED, REASON_DELETED),
                End::Invalid => (CANCELED, "ValidationFailed"),
            };
            status.conditions = vec![drydock_api::metav1::Condition {
                type_: type_.into(),
                status: "True".into(),
                reason: reason.into(),
                last_transition_time: Some(ago(age)),
                ..Default::default()
            }];
        }
        object
    }

    /// Reads an object back: what differs from the state that it was made of is what a write changed.
    pub fn of(object: &EvictionRequest) -> Self {
        let status = &object.status;
        let active = status.active_interceptors.first().map(|name| index(name));
        let mut entries = [Entry::default(); 3];
        for (place, entry) in status.interceptors.iter().enumerate() {
            let heartbeat = entry.heartbeat_time.map(age).filter(|_| active == u8::try_from(place).ok());
            entries[place] = Entry { heartbeat, completed: entry.completion_time.is_some() };
        }
        Self {
            requesters: u8::try_from(object.spec.requesters.len()).unwrap(),
            deleting: object.metadata.deletion_timestamp.is_some(),
            begun: !status.target_interceptors.is_empty(),
            active,
            processed: u8::try_from(status.processed_interceptors.len()).unwrap(),
            // Nobody reads it once nobody is active.
            activation: status.activation_time.filter(|_| active.is_some()).map(age).unwrap_or_default(),
            entries,
            end: end_of(object),
            label: object.metadata.labels["app"].parse().unwrap(),
            observed: status.observed_generation == object.metadata.generation,
        }
    }

    /// The request a tick later.
    pub fn older(mut self) -> Self {
        let older = |age: u8| (age + 1).min(OLD);
        self.activation = if self.active.is_some() { older(self.activation) } else { 0 };
        for entry in &mut self.entries {
            entry.heartbeat = entry.heartbeat.map(older);
        }
        self.end = self.end.map(|(end, age)| (end, older(age)));
        self
    }
}

impl Entry {
    fn object((name, entry): (&&str, &Entry)) -> InterceptorStatus {
        InterceptorStatus {
            name: (*name).to_owned(),
            start_time: entry.heartbeat.map(ago),
            heartbeat_time: entry.heartbeat.map(ago),
            completion_time: entry.completed.then_some(NOW),
            ..Default::default()
        }
    }
}

fn end_of(object: &EvictionRequest) -> Option<(End, u8)> {
    let is_true = |type_| find_condition(&object.status.conditions, type_).filter(|c| c.is_true());
    let (condition, end) = match (is_true(EVICTED), is_true(CANCELED)) {
        (Some(evicted), None) => (evicted, End::Evicted),
        (None, Some(canceled)) => match canceled.reason.as_str() {
            REASON_NO_REQUESTERS => (canceled, End::NoRequesters),
            REASON_DELETED => (canceled, End::Deleted),
            _ => (canceled, End::Invalid),
        },
        (None, None) => return None,
        (Some(_), Some(_)) => panic!("Evicted and Canceled"),
    };
    Some((end, age(condition.last_transition_time.unwrap())))
}

/// Index of an interceptor.
pub fn index(name: &str) -> u8 {
    u8::try_from(INTERCEPTORS.iter().position(|known| *known == name).unwrap()).unwrap()
}

fn ago(age: u8) -> Timestamp {
    NOW - Duration::from_secs(600 * u64::from(age))
}

fn age(time: Timestamp) -> u8 {
    u8::try_from((NOW.as_second() - time.as_second()).div_euclid(TICK)).unwrap().min(OLD)
}

/// Ticks until a time, rounded up.
pub fn ticks_until(time: Timestamp) -> u8 {
    let seconds = (time.as_second() - NOW.as_second()).max(0);
    u8::try_from((seconds + TICK - 1) / TICK).unwrap().min(OLD + 1)
}
