//! What is done about a Deployment: its replicas and its record, and which turns end. Pure.
//!
//! ```text
//!   turn ──▶ budget allows an eviction ──────────────────────────▶ the turn ends: the pod is evicted
//!        └─▶ it does not ──▶ cause to decline ─▶ record without the pod ─▶ the turn is declined
//!                        └─▶ one replica more, recorded ─▶ wait for the budget
//! ```
//!
//! The delta is the number of pods with a live request that the surge is for, worked out anew each time. A pod whose turn has
//! ended well keeps its replica until it leaves; one whose turn is declined loses it before the turn ends, so that
//! after a crash in between no replica is left that nobody waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use drydock_api::eviction_request::transitions::CLOCK_SKEW;
use drydock_interceptor_runtime::TurnEnd;
use drydock_runtime::PodDisruptionBudget;
use drydock_runtime::surge_record::{FoundRecord, MAX_PODS, SurgeRecord};
use jiff::Timestamp;

use crate::amount::would_allow_with_one_more;
use crate::decline::{turn_refusal, workload_refusal};
use crate::deployment::Deployment;
use crate::scale::Scale;

/// A pod of the Deployment that has a live request and has not begun to leave.
#[derive(Clone, Debug)]
pub struct SurgeTurn {
    /// UID of the pod.
    pub pod: String,
    /// When our turn began.
    pub began: Timestamp,
    /// Whether our turn goes on; else it has ended, and the pod is about to be evicted.
    pub is_waiting: bool,
    /// Whether the pod is ready.
    pub is_ready: bool,
    /// The budgets that are known to cover the pod.
    pub budgets: Vec<Arc<PodDisruptionBudget>>,
    /// Name of a budget of which only the host knows whether it covers the pod.
    pub unknown_budget: Option<String>,
}

/// What is to be done: first the write, and only if it succeeds, the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SurgeDecision {
    /// The update of what has the number.
    pub write: Option<SurgeWrite>,
    /// The turns that end, by the UID of the pod.
    pub ends: Vec<(String, TurnEnd)>,
    /// What the turns that go on wait for, by the UID of the pod.
    pub waits: Vec<(String, String)>,
    /// When to decide again if nothing changes before.
    pub again_at: Option<Timestamp>,
}

/// An update of what has the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurgeWrite {
    /// The number.
    pub number: i32,
    /// The record; none removes it.
    pub record: Option<SurgeRecord>,
}

/// Decides about a Deployment from what is known now. `scale` is the number that a surge is added to; `turns` has every
/// live request for one of its pods that our interceptor serves or that the record names.
pub fn decide(
    deployment: &Deployment,
    scale: &Scale<'_>,
    turns: &[SurgeTurn],
    now: Timestamp,
) -> SurgeDecision {
    if let FoundRecord::Broken(why) = scale.record {
        let why = format!("the surge record of {} cannot be read: {why}", scale.holder);
        return SurgeDecision { write: None, ..refuse(scale, turns, &why) };
    }
    match workload_refusal(deployment, scale) {
        Some(why) => refuse(scale, turns, &why),
        None => Surge { deployment, scale, record: scale.record.valid() }.decide(turns, now),
    }
}

/// Declines all turns, and takes back what the number has of a surge.
pub fn refuse(scale: &Scale<'_>, turns: &[SurgeTurn], why: &str) -> SurgeDecision {
    let waiting = turns.iter().filter(|turn| turn.is_waiting);
    let ends = waiting.map(|turn| (turn.pod.clone(), TurnEnd::Declined(why.to_owned()))).collect();
    let write = scale.record.valid().map(|_| SurgeWrite { number: scale.base(), record: None });
    SurgeDecision { write, ends, ..SurgeDecision::default() }
}

/// A Deployment that may be surged.
struct Surge<'a> {
    deployment: &'a Deployment,
    scale: &'a Scale<'a>,
    record: Option<&'a SurgeRecord>,
}

/// What becomes of a turn.
enum TurnVerdict {
    End(TurnEnd),
    Wait(String),
    /// It needs one replica more.
    Surge,
}

impl Surge<'_> {
    /// Whether the surge that stands is also for this pod.
    fn is_for(&self, pod: &str) -> bool {
        self.record.is_some_and(|record| record.pods.contains(pod))
    }

    /// Since when the turn has waited for the replica that it waits for now. A turn that is not served yet waits for
    /// those before it, and each change of the record is progress. A record that is further in the future than clocks
    /// may differ holds up no deadline: others have written it.
    fn waits_since(&self, turn: &SurgeTurn, now: Timestamp) -> Timestamp {
        let is_ahead =
            |since: Timestamp| Duration::try_from(since.duration_since(now)).is_ok_and(|by| by > CLOCK_SKEW);
        match self.record.filter(|record| !is_ahead(record.since)) {
            Some(record) if self.is_for(&turn.pod) => record.since,
            Some(record) => record.since.max(turn.began),
            None => turn.began,
        }
    }

    /// Whether others have lowered the number since the surge for this pod.
    fn is_undone(&self, turn: &SurgeTurn) -> bool {
        self.scale.is_lowered() && self.is_for(&turn.pod)
    }

    /// How many replicas there may be more at a time.
    fn max(&self) -> i32 {
        let floor = self.scale.floor();
        let room = self.scale.most.map_or(i32::MAX, |most| most.saturating_sub(floor));
        self.deployment.max_surge_of(floor).min(room)
    }

    fn decide(&self, turns: &[SurgeTurn], now: Timestamp) -> SurgeDecision {
        let mut decision = SurgeDecision::default();
        let mut allowance = Allowance::of(self, turns);
        let mut pods = BTreeSet::new();
        let mut deadlines = Vec::new();
        for turn in self.in_order(turns) {
            if !turn.is_waiting {
                if self.is_for(&turn.pod) && self.keeps(turn, now) && self.has_room(&pods) {
                    pods.insert(turn.pod.clone());
                    deadlines.push(self.deadline(turn, now));
                }
                continue;
            }
            match self.judge(turn, &mut allowance, now) {
                TurnVerdict::End(end) => {
                    if matches!(end, TurnEnd::Done(_)) && self.has_room(&pods) {
                        pods.insert(turn.pod.clone());
                    }
                    decision.ends.push((turn.pod.clone(), end));
                    continue;
                }
                TurnVerdict::Surge if self.has_room(&pods) => {
                    pods.insert(turn.pod.clone());
                    let text = format!("waiting for one more replica of Deployment {}", self.deployment.name);
                    decision.waits.push((turn.pod.clone(), text));
                }
                TurnVerdict::Surge => {
                    let text = format!("waiting for pods before it, at most {} at a time", self.max());
                    decision.waits.push((turn.pod.clone(), text));
                }
                TurnVerdict::Wait(text) => decision.waits.push((turn.pod.clone(), text)),
            }
            deadlines.push(self.deadline(turn, now));
        }
        decision.again_at = deadlines.into_iter().flatten().filter(|deadline| *deadline > now).min();
        decision.write = self.write_for(pods, now);
        decision
    }

    fn deadline(&self, turn: &SurgeTurn, now: Timestamp) -> Option<Timestamp> {
        self.waits_since(turn, now).checked_add(self.deployment.progress_deadline).ok()
    }

    /// Whether a pod whose turn has ended well keeps its replica: as long as the pod may go, or the replica may come
    /// (again: another pod may have gone in its place).
    fn keeps(&self, turn: &SurgeTurn, now: Timestamp) -> bool {
        let may_go =
            turn.unknown_budget.is_none() && turn.budgets.iter().all(|budget| budget.disruptions_allowed > 0);
        !self.is_undone(turn) && (may_go || self.refusal(turn, now).is_none())
    }

    fn refusal(&self, turn: &SurgeTurn, now: Timestamp) -> Option<String> {
        let waited = now.duration_since(self.waits_since(turn, now));
        turn_refusal(self.deployment, waited)
    }

    fn has_room(&self, pods: &BTreeSet<String>) -> bool {
        pods.len() < MAX_PODS && i32::try_from(pods.len()).is_ok_and(|taken| taken < self.max())
    }

    /// Those that the surge is for already, then the others, the oldest first.
    fn in_order<'t>(&self, turns: &'t [SurgeTurn]) -> Vec<&'t SurgeTurn> {
        let mut ordered: Vec<_> = turns.iter().collect();
        ordered.sort_by_key(|turn| (!self.is_for(&turn.pod), turn.is_waiting, turn.began, &turn.pod));
        ordered
    }

    fn judge(&self, turn: &SurgeTurn, allowance: &mut Allowance, now: Timestamp) -> TurnVerdict {
        let budget = match (turn.budgets.as_slice(), &turn.unknown_budget) {
            ([_, _, ..], _) => return declined("more than one PodDisruptionBudget covers the pod"),
            (_, Some(name)) => {
                return declined(&format!(
                    "whether PodDisruptionBudget {name} covers the pod is not known: its selector has more than 16 KiB, or the \
                     pod too many labels"
                ));
            }
            ([], None) => return declined("no PodDisruptionBudget covers the pod"),
            ([budget], None) => budget,
        };
        if !turn.is_ready {
            return declined("the pod is not ready");
        }
        if self.is_undone(turn) {
            return declined(&format!("others have lowered {} of {}", self.scale.field, self.scale.holder));
        }
        if allowance.take(budget, self.is_for(&turn.pod)) {
            return TurnVerdict::End(match self.is_for(&turn.pod) {
                true => {
                    TurnEnd::Done(format!("one more replica of Deployment {} is ready", self.deployment.name))
                }
                false => TurnEnd::Declined(format!("budget {} allows the eviction", budget.name)),
            });
        }
        if let Some(why) = self.refusal(turn, now) {
            return declined(&why);
        }
        if !would_allow_with_one_more(budget) && !self.is_for(&turn.pod) && budget.is_observed() {
            return declined(&format!("budget {} wants all pods, with one more replica too", budget.name));
        }
        let is_known = self.deployment.is_observed() && budget.is_observed();
        if !is_known && !self.is_for(&turn.pod) {
            let name = if budget.is_observed() { "Deployment" } else { "PodDisruptionBudget" };
            return TurnVerdict::Wait(format!(
                "waiting until the {name}'s controller has seen its last change"
            ));
        }
        TurnVerdict::Surge
    }

    /// The update that makes the surge one for these pods; none if it is.
    fn write_for(&self, pods: BTreeSet<String>, now: Timestamp) -> Option<SurgeWrite> {
        let recorded = self.record.map(|record| &record.pods);
        if (recorded == Some(&pods) && !self.scale.is_lowered()) || (recorded.is_none() && pods.is_empty()) {
            return None;
        }
        let (base, floor) = (self.scale.base(), self.scale.floor());
        // A lowered number is no floor for other pods: they are decided about when the record is gone.
        let record =
            (!pods.is_empty() && !self.scale.is_lowered()).then(|| SurgeRecord::new(base, floor, pods, now));
        Some(SurgeWrite { number: record.as_ref().map_or(base, |record| record.number), record })
    }
}

fn declined(why: &str) -> TurnVerdict {
    TurnVerdict::End(TurnEnd::Declined(why.to_owned()))
}

/// How many more evictions each budget allows, without those that are about to come.
struct Allowance {
    left: BTreeMap<String, i32>,
    /// Replicas of the surge whose pods have not ended their turns, which are for these pods alone, and those that are
    /// being taken back: what a budget allows because of them, it soon allows no longer.
    reserved: i32,
    /// Whether the surplus is known: the Deployment's controller has seen the last change.
    is_known: bool,
}

impl Allowance {
    fn of(surge: &Surge<'_>, turns: &[SurgeTurn]) -> Self {
        let mut left = BTreeMap::new();
        for turn in turns {
            for budget in &turn.budgets {
                let allowed = if budget.is_observed() { budget.disruptions_allowed } else { 0 };
                let left = left.entry(budget.name.clone()).or_insert(allowed);
                *left -= i32::from(!turn.is_waiting);
            }
        }
        let ended = turns.iter().filter(|turn| !turn.is_waiting && surge.is_for(&turn.pod));
        let ended = i32::try_from(ended.count()).unwrap_or(i32::MAX);
        let surged = surge.record.map_or(0, |record| record.surged() - ended);
        let surplus = (surge.deployment.current_replicas - surge.deployment.replicas).max(0);
        Self { left, reserved: surged.saturating_add(surplus), is_known: surge.deployment.is_observed() }
    }

    /// Takes an eviction for a pod; `is_recorded` says that the surge is for it.
    fn take(&mut self, budget: &PodDisruptionBudget, is_recorded: bool) -> bool {
        if !is_recorded && !self.is_known {
            return false;
        }
        let reserved = if is_recorded { 0 } else { self.reserved };
        let Some(left) = self.left.get_mut(&budget.name).filter(|left| **left > reserved) else {
            return false;
        };
        *left -= 1;
        self.reserved -= i32::from(is_recorded);
        true
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "crash_tests.rs"]
mod crash_tests;
