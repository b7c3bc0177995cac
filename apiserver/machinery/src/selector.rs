//! Selectors of lists and watches: label selectors (k8s.io/apimachinery/pkg/labels) and field selectors (pkg/fields).

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

/// Maximum number of terms in a selector. Limited because each term is evaluated for each object and event.
/// Kubernetes has no such limit.
pub const TERMS_MAX: usize = 100;

fn too_many_terms() -> String {
    format!("a selector may not have more than {TERMS_MAX} terms")
}
