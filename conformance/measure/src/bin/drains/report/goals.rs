//! What a drain should come to: in numbers where the machine does not matter much, else by the bare loop of
//! the same run.

use std::fmt;

use super::{TrialFigure, of};
use crate::form::BudgetForm;
use crate::subject::DrainSubject;
use crate::trial::Trial;

/// Of the bare loop's rate. Ours keeps status, order and interceptors.
const RATE: f64 = 0.95;

/// The figure that is shown beside the floor's.
pub const CPU_OF_OURS: &str = "CPU of ours, ms a pod";

/// What only Drydock has, and what it should be at most, in all forms alike.
pub const OF_OURS: [(&str, TrialFigure, f64); 6] = [
    ("first deletion s", |t| t.figures.first_deletion.unwrap_or(f64::INFINITY), 1.0),
    (CPU_OF_OURS, |t| t.per_pod(1000.0 * t.cpu.ours()), 2.0),
    ("writes of ours to a pod's request", |t| t.per_pod(to_requests(t)), 4.0),
    ("other writes of ours a pod, but to Nodes", |t| t.per_pod(others(t)), 0.5),
    ("reviews a pod", |t| t.per_pod(t.figures.reviews as f64), 0.1),
    ("most writes to a Node", |t| t.figures.most_writes_to_a_node as f64, 4.0),
];

/// Writes to EvictionRequests.
fn to_requests(trial: &Trial) -> f64 {
    writes(trial, |what| what.contains("evictionrequests"))
}

/// Events, statuses of the maintenance, the Lease: those that several pods share. Nodes have a goal of their own.
fn others(trial: &Trial) -> f64 {
    writes(trial, |what| !["evictionrequests", "pods/eviction", " nodes"].iter().any(|of| what.contains(of)))
}

fn writes(trial: &Trial, counts: impl Fn(&str) -> bool) -> f64 {
    let writes = trial.figures.writes.iter().filter(|(what, _)| counts(what));
    writes.map(|(_, count)| *count as f64).sum()
}

/// One goal of one form.
pub struct DrainGoal {
    form: BudgetForm,
    what: &'static str,
    is: f64,
    bound: f64,
    at_least: bool,
    floor: Option<f64>,
}

impl DrainGoal {
    /// Whether it is met. A figure below zero meets no goal: idling cost more CPU before the drain than the drain did.
    fn is_met(&self) -> bool {
        if self.at_least { self.is >= self.bound } else { (0.0..=self.bound).contains(&self.is) }
    }
}

impl fmt::Display for DrainGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DrainGoal { form, what, is, bound, at_least, floor } = self;
        let side = if *at_least { "least" } else { "most" };
        let verdict = if self.is_met() { "met" } else { "missed" };
        let floor = floor.map(|floor| format!("; the floor of this run: {floor:.2}")).unwrap_or_default();
        write!(f, "- {form}: {what}: {is:.2} (goal: at {side} {bound}{floor}): {verdict}")
    }
}

/// The goals of each form that was measured, by the medians.
pub fn judge(trials: &[Trial]) -> Vec<DrainGoal> {
    let forms = BudgetForm::ALL.into_iter().filter(|form| trials.iter().any(|trial| trial.form == *form));
    forms.flat_map(|form| of_form(trials, form)).collect()
}

fn of_form(trials: &[Trial], form: BudgetForm) -> Vec<DrainGoal> {
    let ours = |figure: TrialFigure| of(trials, form, DrainSubject::Drydock, figure).median;
    let has_floor = trials.iter().any(|trial| trial.form == form && trial.subject == DrainSubject::Floor);
    let ratio = |figure: TrialFigure| by(ours(figure), of(trials, form, DrainSubject::Loop, figure).median);
    let rate = ratio(|t| t.figures.per_second);
    let host = ratio(|t| t.per_pod(t.cpu.hosts()));
    let by_loop = [
        DrainGoal {
            form,
            what: "deletions/s by the loop's",
            is: rate,
            bound: RATE,
            at_least: true,
            floor: None,
        },
        DrainGoal {
            form,
            what: "CPU of the host by the loop's",
            is: host,
            bound: form.cpu_goal(),
            at_least: false,
            floor: None,
        },
    ];
    let alone = OF_OURS.map(|(what, figure, bound)| DrainGoal {
        form,
        what,
        is: ours(figure),
        bound,
        at_least: false,
        floor: (has_floor && what == CPU_OF_OURS)
            .then(|| of(trials, form, DrainSubject::Floor, figure).median),
    });
    by_loop.into_iter().chain(alone).collect()
}

/// A ratio of figures that were measured; NaN, which meets no goal, if one of them is not above zero.
fn by(ours: f64, loops: f64) -> f64 {
    if ours > 0.0 && loops > 0.0 { ours / loops } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_at_its_bound_and_missed_beyond() {
        let goal = |is, at_least| DrainGoal {
            form: BudgetForm::One,
            what: "it",
            is,
            bound: 1.0,
            at_least,
            floor: None,
        };
        assert!(goal(1.0, true).is_met() && goal(1.0, false).is_met());
        assert!(!goal(0.9, true).is_met() && !goal(1.1, false).is_met());
        assert!(!goal(-0.1, false).is_met());
        for (ours, loops) in [(-1.0, -2.0), (1.0, 0.0), (0.0, 1.0)] {
            assert!(!goal(by(ours, loops), true).is_met() && !goal(by(ours, loops), false).is_met());
        }
        assert!(goal(by(2.0, 2.0), false).is_met());
        assert_eq!(goal(1.1, false).to_string(), "- one: it: 1.10 (goal: at most 1): missed");
        let beside = DrainGoal { floor: Some(1.05), ..goal(1.1, false) };
        assert_eq!(
            beside.to_string(),
            "- one: it: 1.10 (goal: at most 1; the floor of this run: 1.05): missed"
        );
    }
}
