//! The objects of a small state, and the small state of an object. An object that has none is illegal.

use std::collections::BTreeMap;
use std::time::Duration;

use drydock_api::eviction_request::interceptors::IMPERATIVE_EVICTION;
use drydock_api::eviction_request::pod_labels::LABEL_SYNC;
use drydock_api::eviction_request::{
    CANCELED, EVICTED, EvictionRequest, EvictionTarget, Interceptor, InterceptorStatus, LocalPodReference,
    PodInfo, REASON_DELETED, REASON_NO_REQUESTERS, REASON_POD_DELETED, REASON_POD_TERMINATED,
    REASON_VALIDATION_FAILED, Requester,
};
use drydock_api::metav1::{Condition, find_condition};
use drydock_runtime::cache::PodPhase;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::state::{CANCELED_GRACE, DEADLINE, End, INTERCEPTORS, Phase, Pod, RETENTION, Request, Turn};
use crate::decision::{Config, TargetPod};

pub(super) const NAMES: [&str; INTERCEPTORS as usize] =
    ["a.example.com", "b.example.com", IMPERATIVE_EVICTION];
const TICK: i64 = 60;
/// The API server's time, at which each state is looked at.
const NOW: i64 = 1_000_000;
/// The generation of the requests.
const GENERATION: i64 = 7;
const UID: &str = "uid";
const ENDS: [(&str, &str); 5] = [
    (EVICTED, REASON_POD_DELETED),
    (EVICTED, REASON_POD_TERMINATED),
    (CANCELED, REASON_NO_REQUESTERS),
    (CANCELED, REASON_DELETED),
    (CANCELED, REASON_VALIDATION_FAILED),
];

/// The clocks: the controller's is so many seconds ahead of those of the API server and the interceptors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    pub(super) ahead: i64,
}

impl Clocks {
    pub(super) fn server(self) -> Timestamp {
        at(NOW)
    }

    pub(super) fn controller(self) -> Timestamp {
        at(NOW + self.ahead)
    }

    /// Ticks until a time of the controller's clock, rounded up.
    pub(super) fn ticks_until(self, wake: Timestamp) -> u8 {
        let seconds = (wake.as_second() - self.controller().as_second()).max(0);
        u8::try_from((seconds + TICK - 1) / TICK).unwrap_or(u8::MAX)
    }

    /// The request as the API server has it.
    pub(super) fn request(self, small: &Request) -> EvictionRequest {
        let mut request = EvictionRequest::named("ns", UID);
        let meta = &mut request.metadata;
        (meta.uid, meta.resource_version, meta.generation) = ("r".into(), "1".into(), GENERATION);
        meta.creation_timestamp = Some(at(0));
        meta.deletion_timestamp = small.is_deleted.then(|| at(1));
        if small.has_label {
            meta.labels = labels(true).into();
            let fields = json!({"f:metadata": {"f:labels": {"f:app": {}}}});
            let entry = json!({"manager": LABEL_SYNC, "operation": "Update", "fieldsV1": fields});
            meta.managed_fields = [serde_json::from_value(entry).unwrap()].into();
        }
        request.spec.target =
            EvictionTarget { pod: Some(LocalPodReference { name: "p".into(), uid: UID.into() }) };
        request.spec.requesters = requesters(small.requesters);
        self.fill_status(&mut request, small);
        request
    }

    fn fill_status(self, request: &mut EvictionRequest, small: &Request) {
        let status = &mut request.status;
        status.observed_generation = GENERATION - i64::from(!small.is_observed);
        if small.is_taken_up {
            let processed = usize::from(small.processed);
            status.target_interceptors = NAMES.map(|name| Interceptor { name: name.into() }).into();
            status.processed_interceptors =
                NAMES[..processed].iter().map(|name| (*name).to_owned()).collect();
            status.pod_info = Some(PodInfo { pod_type: "Default".into(), ..PodInfo::default() });
            status.interceptors =
                NAMES.map(|name| InterceptorStatus { name: name.into(), ..Default::default() }).into();
            status.activation_time = Some(at(NOW + self.ahead - 90 * TICK));
            if let Some(turn) = small.turn {
                status.active_interceptors = vec![NAMES[processed].into()];
                self.fill_turn(&mut status.interceptors[processed], &mut status.activation_time, turn);
            }
        }
        if let Some(end) = small.end {
            let (type_, reason) = ENDS.into_iter().find(|(_, reason)| *reason == end.by).unwrap();
            status.conditions = vec![Condition {
                type_: type_.into(),
                status: "True".into(),
                observed_generation: 1,
                last_transition_time: Some(at(NOW + self.ahead - TICK * i64::from(end.age))),
                reason: reason.into(),
                message: "It has ended.".into(),
            }];
        }
    }

    fn fill_turn(self, entry: &mut InterceptorStatus, activation: &mut Option<Timestamp>, turn: Turn) {
        let last = NOW - TICK * i64::from(turn.age);
        if turn.has_begun {
            entry.start_time = Some(at(last));
            entry.heartbeat_time = Some(at(last));
        } else {
            *activation = Some(at(last + self.ahead));
        }
        entry.completion_time = turn.completed.map(|age| at(NOW - TICK * i64::from(age)));
    }

    /// The small state of a request, or what is illegal in it.
    pub(super) fn small(self, request: &EvictionRequest) -> Result<Request, String> {
        let status = &request.status;
        let targets: Vec<&str> = status.target_interceptors.iter().map(|it| it.name.as_str()).collect();
        if !targets.is_empty() && targets != NAMES {
            return Err(format!("the targets are {targets:?}"));
        }
        let turns: Vec<&str> = status
            .processed_interceptors
            .iter()
            .chain(&status.active_interceptors)
            .map(String::as_str)
            .collect();
        if status.active_interceptors.len() > 1 || !NAMES.starts_with(&turns) {
            return Err(format!("the turns are {turns:?}"));
        }
        let turn = match request.active_interceptor() {
            Some(_) => Some(self.small_turn(request)?),
            None => None,
        };
        let end = self.small_end(request)?;
        if end.is_some() && turn.is_some() {
            return Err("a request that has ended has an active interceptor".to_owned());
        }
        Ok(Request {
            requesters: u8::try_from(request.spec.requesters.len()).map_err(|e| e.to_string())?,
            is_deleted: request.is_being_deleted(),
            has_label: !request.metadata.labels.is_empty(),
            is_observed: status.observed_generation == request.metadata.generation,
            is_taken_up: !targets.is_empty(),
            processed: u8::try_from(status.processed_interceptors.len()).map_err(|e| e.to_string())?,
            turn,
            end,
        })
    }

    fn small_turn(self, request: &EvictionRequest) -> Result<Turn, String> {
        let entry = request.active_interceptor_status().ok_or("the active interceptor has no entry")?;
        let age = match entry.heartbeat_time {
            Some(beat) => ticks(at(NOW), beat)?,
            None => ticks(
                self.controller(),
                request.status.activation_time.ok_or("a turn has no activationTime")?,
            )?,
        };
        let completed = entry.completion_time.map(|at_| ticks(at(NOW), at_)).transpose()?;
        Ok(Turn {
            age: age.min(DEADLINE + 1),
            has_begun: entry.start_time.is_some(),
            completed: completed.map(|age| age.min(1)),
        })
    }

    fn small_end(self, request: &EvictionRequest) -> Result<Option<End>, String> {
        let status = &request.status;
        let ended: Vec<&Condition> = [EVICTED, CANCELED]
            .iter()
            .filter_map(|type_| find_condition(&status.conditions, type_))
            .collect();
        match ended.as_slice() {
            [] => Ok(None),
            [end] => {
                let known =
                    ENDS.into_iter().find(|known| *known == (end.type_.as_str(), end.reason.as_str()));
                let (_, by) = known.ok_or_else(|| format!("it ended with {end:?}"))?;
                let since = end.last_transition_time.ok_or("an end has no time")?;
                Ok(Some(End { by, age: ticks(self.controller(), since)?.min(RETENTION) }))
            }
            _ => Err("it is both Evicted and Canceled".to_owned()),
        }
    }
}

/// The pod under the name of the target; none if there is none.
pub(super) fn pod(small: &Pod) -> Option<drydock_runtime::Pod> {
    let mut pod = drydock_runtime::Pod {
        name: "p".into(),
        namespace: "ns".into(),
        uid: UID.into(),
        labels: labels(small.has_label).into(),
        interceptors: Some(NAMES[..2].iter().map(|name| (*name).to_owned()).collect()),
        in_group: small.in_group,
        phase: PodPhase::Running,
        ..drydock_runtime::Pod::default()
    };
    match small.phase {
        Phase::Running => {}
        Phase::Terminating(left) => pod.deletion_timestamp = Some(at(NOW + TICK * i64::from(left))),
        Phase::Terminal => pod.phase = PodPhase::Succeeded,
        Phase::Gone => return None,
        Phase::Replaced => pod.uid = "another".into(),
    }
    Some(pod)
}

pub(super) fn config() -> Config {
    let ticks = |n: u8| Duration::from_secs(TICK.unsigned_abs() * u64::from(n));
    Config {
        heartbeat_deadline: ticks(DEADLINE),
        retention: Some(ticks(RETENTION)),
        canceled_grace: ticks(CANCELED_GRACE),
        ..Config::default()
    }
}

pub(super) fn requesters(count: u8) -> Vec<Requester> {
    (0..count).map(|i| Requester { name: format!("r{i}.example.com") }).collect()
}

fn labels(has_label: bool) -> BTreeMap<String, String> {
    has_label.then(|| ("app".to_owned(), "x".to_owned())).into_iter().collect()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn ticks(now: Timestamp, then: Timestamp) -> Result<u8, String> {
    let age: SignedDuration = now.duration_since(then);
    if age.as_secs() < 0 || age.as_secs() % TICK != 0 {
        return Err(format!("a time is {age} ago, which no write makes"));
    }
    Ok(u8::try_from(age.as_secs() / TICK).unwrap_or(u8::MAX))
}

/// The times around those at which a step may find something to do: a second before, the time itself, and a second
/// after.
pub(super) fn boundaries(
    request: &EvictionRequest,
    target: TargetPod<'_>,
    config: &Config,
) -> Vec<Timestamp> {
    let status = &request.status;
    let of_entries =
        status.interceptors.iter().flat_map(|entry| [entry.heartbeat_time, entry.completion_time]);
    let of_conditions = status.conditions.iter().map(|condition| condition.last_transition_time);
    let of_pod = match target {
        TargetPod::Present(pod) => pod.deletion_timestamp,
        _ => None,
    };
    let from =
        of_entries.chain(of_conditions).chain([status.activation_time, of_pod, Some(at(NOW))]).flatten();
    let waits = [
        Duration::ZERO,
        config.heartbeat_deadline,
        config.retention.unwrap_or_default(),
        config.canceled_grace,
        Duration::from_secs(30 * 24 * 3600),
    ];
    let exact = from.flat_map(|from| waits.map(|wait| from + wait));
    exact.flat_map(|exact| [-1, 0, 1].map(|second| exact + SignedDuration::from_secs(second))).collect()
}
