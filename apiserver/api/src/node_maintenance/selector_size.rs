//! How much there is to match in selectors: each planning matches them against every node or pod.

use drydock_machinery::field::{Error, Path};

use super::types::NodeSelectorTerm;
use crate::meta::LabelSelector;

/// Most requirements of a node selector, or of all selectors of a drain plan.
pub const MAX_REQUIREMENTS: usize = 1000;
/// Most values of all of them together: as many as there can be nodes in one maintenance, and some.
pub const MAX_VALUES: usize = 4096;

/// What has been counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelectorSize {
    requirements: usize,
    values: usize,
}

impl SelectorSize {
    /// Counts a term of a node selector.
    pub fn add_term(&mut self, term: &NodeSelectorTerm) {
        for requirement in term.match_expressions.iter().chain(&term.match_fields) {
            self.requirements += 1;
            self.values += requirement.values.len();
        }
    }

    /// Counts a label selector.
    pub fn add_labels(&mut self, selector: &LabelSelector) {
        self.requirements += selector.match_labels.len() + selector.match_expressions.len();
        self.values += selector.match_expressions.iter().map(|e| e.values.len()).sum::<usize>();
    }

    /// What is said of too many.
    pub fn excess(&self, path: &Path) -> Option<Error> {
        let counts =
            [(self.requirements, MAX_REQUIREMENTS, "requirements"), (self.values, MAX_VALUES, "values")];
        let (count, max, what) = counts.into_iter().find(|(count, max, _)| count > max)?;
        let detail = format!("the selectors may have at most {max} {what} together, and have {count}");
        Some(Error::forbidden(path.clone(), detail))
    }
}
