//! Limits on the size of one NodeMaintenance, and of its selectors, because each planning matches them against every
//! node or pod.

use drydock_machinery::field::{Error, Path};

use super::types::NodeSelectorTerm;
use drydock_machinery::metav1::LabelSelector;

/// Maximum number of nodes in one object. The status of a node has about 350 bytes while its pods leave (its name,
/// one target per pod type, a message, two numbers), so that this many stay below the 1.5 MiB that the storage
/// accepts.
pub const MAX_NODES: usize = 4000;
/// Maximum bytes of `status.nodeStatuses` as JSON: what the storage accepts, less space for the rest of the object.
pub const MAX_NODE_STATUSES_BYTES: usize = 1_400_000;
/// Maximum bytes of one object that the storage accepts by default.
pub const MAX_OBJECT_BYTES: usize = 3 << 19;
/// Maximum bytes of all conditions together that the controller does not set, as JSON.
pub const MAX_CONDITION_BYTES: usize = 16 << 10;
/// Maximum number of entries of a drain plan, with the twelve that are inserted.
pub const MAX_DRAIN_PLAN: usize = 512;
/// Maximum number of requirements of a node selector, or of all selectors of a drain plan together.
pub const MAX_REQUIREMENTS: usize = 1000;
/// Maximum number of values of these requirements together: slightly more than the nodes that one maintenance can
/// have.
pub const MAX_VALUES: usize = 4096;

/// The size of selectors, counted so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelectorSize {
    requirements: usize,
    values: usize,
}

impl SelectorSize {
    /// Adds a term of a node selector.
    pub fn add_term(&mut self, term: &NodeSelectorTerm) {
        for requirement in term.match_expressions.iter().chain(&term.match_fields) {
            self.requirements += 1;
            self.values += requirement.values.len();
        }
    }

    /// Adds a label selector.
    pub fn add_labels(&mut self, selector: &LabelSelector) {
        self.requirements += selector.match_labels.len() + selector.match_expressions.len();
        self.values += selector.match_expressions.iter().map(|e| e.values.len()).sum::<usize>();
    }

    /// Returns an error if a maximum is exceeded.
    pub fn excess(&self, path: &Path) -> Option<Error> {
        let counts =
            [(self.requirements, MAX_REQUIREMENTS, "requirements"), (self.values, MAX_VALUES, "values")];
        let (count, max, what) = counts.into_iter().find(|(count, max, _)| count > max)?;
        let detail = format!("the selectors may have at most {max} {what} together, and have {count}");
        Some(Error::forbidden(path.clone(), detail))
    }
}
