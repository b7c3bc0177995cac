//! Where we differ from the host on purpose. One entry is one field of one answer of one sequence, with the source of
//! the difference; one that no longer occurs fails the suite.

use crate::stage::Door;

/// A deliberate difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Name of the sequence.
    pub sequence: &'static str,
    /// Number of the answer.
    pub answer: usize,
    /// The field, as a mismatch names it.
    pub field: &'static str,
    /// The ways on which it is seen.
    pub doors: &'static [Door],
    /// Why, and where that is written.
    pub source: &'static str,
}

/// All of them.
pub const DIFFERENCES: &[Difference] = &[];
