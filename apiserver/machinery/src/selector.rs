//! Selectors of lists and watches: on labels (k8s.io/apimachinery/pkg/labels) and on fields (pkg/fields).

mod fields;
mod labels;
mod lexer;
mod object;
mod parser;
#[cfg(test)]
mod tests;

pub use fields::{FieldSelector, FieldTerm};
pub use labels::{LabelSelector, Operator, Requirement};
pub use object::validate_label_selector;

/// More terms than this in one selector are refused: each is asked of each object and event. Kubernetes has no such bound.
pub const TERMS_MAX: usize = 100;

fn too_many_terms() -> String {
    format!("a selector may not have more than {TERMS_MAX} terms")
}
