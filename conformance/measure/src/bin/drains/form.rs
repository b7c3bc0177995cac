//! Which budgets guard the pods: it decides how fast the host itself can evict.

use std::fmt;

use serde::Serialize;

/// The writes of which a pod that is slow to leave has one more.
pub const STATUS_WRITES: &str = "patch evictionrequests/status";

/// The budgets of one drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum BudgetForm {
    /// None.
    None,
    /// One for each of the twenty Deployments.
    Twenty,
    /// A single one over all pods.
    One,
}

impl BudgetForm {
    /// All of them.
    pub const ALL: [BudgetForm; 3] = [BudgetForm::None, BudgetForm::Twenty, BudgetForm::One];

    /// Most successful writes of ours for each pod, by verb and resource, as the figures name them. All follow from the
    /// design: an eviction; a request that is made with the pod's labels, and removed; a status with the first turn, and
    /// one with the end, and a report of a pod that is blocked. One more for each pod is beyond each bound. A pod that is
    /// slow to leave may have one report more: they are counted, and added.
    pub fn most_writes(self) -> [(&'static str, f64); 4] {
        // Without budgets nothing is blocked.
        let statuses = if self == BudgetForm::None { 2.2 } else { 2.9 };
        [
            ("create pods/eviction", 1.1),
            ("patch evictionrequests", 1.5),
            ("delete evictionrequests", 1.1),
            (STATUS_WRITES, statuses),
        ]
    }

    /// Most CPU of the host for an eviction, by that of the bare loop. With budgets the host has more to do for both.
    pub fn cpu_goal(self) -> f64 {
        if self == BudgetForm::None { 1.2 } else { 1.1 }
    }
}

impl fmt::Display for BudgetForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As the command line has them: clap prints its defaults by this.
        f.write_str(match self {
            BudgetForm::None => "none",
            BudgetForm::Twenty => "twenty",
            BudgetForm::One => "one",
        })
    }
}
