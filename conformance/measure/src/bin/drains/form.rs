//! Which budgets guard the pods: it decides how fast the host itself can evict.

use std::fmt;

use serde::Serialize;

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
