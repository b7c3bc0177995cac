//! A crash at every step: all states that a small cluster can come to while the interceptor is killed before, between and
//! after any of its writes, while it decides on what has changed since, and while requesters withdraw and quotas fill.
//! Each state is visited once. In none are there more replicas than maxSurge allows, and out of each the cluster
//! comes to rest without one left over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::*;

const BUDGET: &str = "b";

/// Where the eviction of a pod stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// It has no request yet.
    Unasked,
    /// Our turn goes on.
    Waiting,
    /// Our turn has ended, and the eviction API is asked.
    Evicting,
    /// The pod is gone, or its request is.
    Over,
}

/// What the cluster holds. Nothing of it is in the interceptor's memory, which a crash loses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cluster {
    base: i32,
    max_surge: i32,
    /// `spec.minReplicas` without a surge, if an autoscaler scales the Deployment; its load asks for `base`.
    least: Option<i32>,
    /// What a surge is added to.
    number: i32,
    replicas: i32,
    /// The number and the pods of the record.
    record: Option<(i32, BTreeSet<String>)>,
    pods: BTreeMap<String, Stage>,
    /// Pods that are ready, those that are to leave among them.
    ready: i32,
    is_quota_full: bool,
    /// Whether the owner has taken the opt-in away.
    is_opted_out: bool,
    /// Whether the owner has applied the number without the surge.
    was_lowered: bool,
}

impl Cluster {
    fn new(base: i32, max_surge: i32, asked: usize) -> Self {
        let pods = (0..asked).map(|i| (format!("p{i}"), Stage::Unasked)).collect();
        Self {
            base,
            max_surge,
            least: None,
            number: base,
            replicas: base,
            record: None,
            pods,
            ready: base,
            is_quota_full: false,
            is_opted_out: false,
            was_lowered: false,
        }
    }

    fn autoscaled(self) -> Self {
        Self { least: Some(1), number: 1, ..self }
    }

    /// The number without a surge.
    fn unsurged(&self) -> i32 {
        self.least.unwrap_or(self.base)
    }

    fn allowed(&self) -> i32 {
        (self.ready - self.base).max(0)
    }

    fn record(&self) -> FoundRecord {
        self.record.as_ref().map_or(FoundRecord::Absent, |(number, pods)| {
            let floor = number - i32::try_from(pods.len()).unwrap();
            let pods = pods.clone();
            FoundRecord::Valid(SurgeRecord::new(self.unsurged(), floor, pods, Timestamp::UNIX_EPOCH))
        })
    }

    fn deployment(&self) -> Deployment {
        let record = if self.least.is_none() { self.record() } else { FoundRecord::Absent };
        Deployment {
            name: "d".into(),
            is_opted_in: !self.is_opted_out,
            replicas: self.replicas,
            record,
            current_replicas: self.ready,
            updated_replicas: self.ready,
            max_surge: Some(IntOrString::Int(self.max_surge)),
            progress_deadline: SignedDuration::from_secs(600),
            replica_failure: self.is_quota_full.then(|| "exceeded quota".to_owned()),
            ..Deployment::default()
        }
    }

    fn turns(&self) -> Vec<SurgeTurn> {
        let budget = Arc::new(PodDisruptionBudget {
            name: BUDGET.into(),
            min_available: Some(IntOrString::Int(self.base)),
            expected_pods: self.replicas,
            disruptions_allowed: self.allowed(),
            ..Default::default()
        });
        let live = self.pods.iter().filter(|(_, stage)| matches!(stage, Stage::Waiting | Stage::Evicting));
        live.map(|(pod, stage)| SurgeTurn {
            pod: pod.clone(),
            began: Timestamp::UNIX_EPOCH,
            is_waiting: *stage == Stage::Waiting,
            is_ready: true,
            budgets: vec![budget.clone()],
            unknown_budget: None,
        })
        .collect()
    }

    fn decision(&self) -> SurgeDecision {
        let (deployment, record) = (self.deployment(), self.record());
        let scale = match self.least {
            None => deployment.scale(),
            Some(_) => Scale {
                holder: "HorizontalPodAutoscaler h".to_owned(),
                field: "spec.minReplicas",
                number: self.number,
                replicas: self.replicas,
                most: Some(self.base + self.max_surge),
                applied_by: None,
                record: &record,
            },
        };
        decide(&deployment, &scale, &self.turns(), Timestamp::UNIX_EPOCH)
    }

    /// Carries out the first `steps` writes of a decision; then the interceptor crashes.
    fn after(&self, decision: &SurgeDecision, steps: usize) -> Self {
        let mut next = self.clone();
        let mut left = steps;
        if let Some(write) = &decision.write {
            if left == 0 {
                return next;
            }
            left -= 1;
            next.number = write.number;
            if next.least.is_none() {
                next.replicas = write.number;
            }
            next.record = write.record.as_ref().map(|record| (record.number, record.pods.clone()));
        }
        for (pod, _) in decision.ends.iter().take(left) {
            next.pods.insert(pod.clone(), Stage::Evicting);
        }
        next
    }

    /// The states after each number of writes of the interceptor, decided on this state or an older one.
    fn interceptor(&self, seen: &Self) -> Vec<Self> {
        let decision = seen.decision();
        let is_stale = (seen.number, &seen.record) != (self.number, &self.record);
        if decision.write.is_some() && is_stale {
            // The write carries a resourceVersion and is refused; nothing else is done then.
            return Vec::new();
        }
        let steps = decision.ends.len() + usize::from(decision.write.is_some());
        let is_turn = |(pod, _): &&(String, TurnEnd)| self.pods[pod] == Stage::Waiting;
        let ends = decision.ends.iter().filter(is_turn).cloned().collect();
        let decision = SurgeDecision { ends, ..decision };
        (1..=steps).map(|steps| self.after(&decision, steps)).collect()
    }

    /// The states that everybody else can bring about: pods start and stop, are evicted through their budget, and are
    /// asked to leave.
    fn others(&self) -> Vec<Self> {
        let mut next = Vec::new();
        let mut add = |change: &dyn Fn(&mut Self)| {
            let mut state = self.clone();
            change(&mut state);
            next.push(state);
        };
        let scaled = self.number.max(self.base);
        if self.least.is_some() && self.replicas != scaled {
            add(&|state| state.replicas = scaled);
        }
        if self.ready < self.replicas && !(self.is_quota_full && self.replicas > self.base) {
            add(&|state| state.ready += 1);
        }
        if self.ready > self.replicas {
            add(&|state| state.ready -= 1);
        }
        for (pod, stage) in &self.pods {
            match stage {
                Stage::Unasked => add(&|state| {
                    state.pods.insert(pod.clone(), Stage::Waiting);
                }),
                Stage::Evicting if self.allowed() > 0 => add(&|state| {
                    state.ready -= 1;
                    state.pods.insert(pod.clone(), Stage::Over);
                }),
                _ => {}
            }
        }
        next
    }

    /// What can happen at any time, and need not.
    fn mishaps(&self) -> Vec<Self> {
        let asked = self.pods.iter().filter(|(_, s)| matches!(s, Stage::Waiting | Stage::Evicting));
        let withdrawn = asked.map(|(pod, _)| {
            let mut state = self.clone();
            state.pods.insert(pod.clone(), Stage::Over);
            state
        });
        let full = Self { is_quota_full: true, ..self.clone() };
        let opted_out = Self { is_opted_out: true, ..self.clone() };
        let mut lowered = Self { number: self.unsurged(), was_lowered: true, ..self.clone() };
        if lowered.least.is_none() {
            lowered.replicas = lowered.number;
        }
        withdrawn.chain([full, opted_out, lowered]).collect()
    }

    /// Lets everything run, without a crash, until nothing changes any more.
    fn at_rest(mut self) -> Self {
        for _ in 0..100 {
            let before = self.clone();
            let decision = self.decision();
            self = self.after(&decision, usize::MAX);
            self = self.others().into_iter().next().unwrap_or(self);
            if self == before {
                return self;
            }
        }
        panic!("it does not come to rest: {self:?}")
    }
}

/// Visits every state that can be reached; returns how many there are.
fn explore(start: Cluster, may_be_stale: bool) -> usize {
    let mut seen = BTreeSet::from([start.clone()]);
    let mut open = VecDeque::from([start]);
    while let Some(state) = open.pop_front() {
        assert!(state.replicas <= state.base + state.max_surge, "too many: {state:?}");
        assert!(state.replicas >= state.base, "too few: {state:?}");
        let rest = state.clone().at_rest();
        assert_eq!((rest.replicas, &rest.record), (rest.base, &None), "from {state:?} to {rest:?}");
        assert_eq!(rest.number, rest.unsurged(), "from {state:?} to {rest:?}");
        // An autoscaler may be at its greatest number because it has not lowered the replicas since the surge before.
        let is_held_up = rest.is_quota_full || rest.is_opted_out || rest.was_lowered || rest.least.is_some();
        let all_left = rest.pods.values().all(|stage| *stage == Stage::Over);
        assert!(all_left || is_held_up, "from {state:?} to {rest:?}");
        let changed = state.others().into_iter().chain(state.mishaps());
        let changed: Vec<_> = changed.collect();
        // A cache that lags shows the interceptor the state before.
        let stale = changed.iter().filter(|_| may_be_stale).flat_map(|now| now.interceptor(&state));
        let next: Vec<_> = stale.chain(state.interceptor(&state)).collect();
        for state in next.into_iter().chain(changed) {
            if seen.insert(state.clone()) {
                open.push_back(state);
            }
        }
    }
    seen.len()
}

#[test]
fn no_replica_is_left_over_wherever_the_interceptor_crashes() {
    for (base, max_surge, asked) in [(1, 1, 1), (2, 1, 2), (3, 1, 3), (2, 2, 2), (3, 2, 3)] {
        let states = explore(Cluster::new(base, max_surge, asked), true);
        assert!(states > 10, "{states} states of {base} replicas are too few to mean anything");
    }
}

#[test]
fn with_an_autoscaler_its_least_number_is_as_before_wherever_the_interceptor_crashes() {
    for (base, max_surge, asked) in [(2, 1, 2), (3, 1, 3), (3, 2, 3)] {
        explore(Cluster::new(base, max_surge, asked).autoscaled(), true);
    }
}

#[test]
fn more_pods_than_max_surge_leave_one_after_the_other() {
    let rest = Cluster::new(5, 1, 5).at_rest();
    assert!(rest.pods.values().all(|stage| *stage == Stage::Over), "{rest:?}");
    assert_eq!((rest.replicas, rest.record, rest.ready), (5, None, 5));
}
