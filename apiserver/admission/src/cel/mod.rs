//! CEL as in Kubernetes: the crate `cel` with the functions that the host adds to the language (k8s.io/apiserver
//! pkg/cel/environment/base.go). Expressions are checked before they run, and their cost is limited while they run.
//!
//! ```text
//!   Expression::compile   text -> parsed -> names checked -> rewritten so that its cost is charged
//!   Activation            the variables, and the remaining cost budget
//! ```

mod activation;
mod check;
mod cost_meter;
mod costs;
mod expression;
mod functions;
pub mod library;
mod rewrite;
pub mod stack;
mod two_variables;
mod value;

pub use activation::{Activation, ComposedVariable};
pub use cost_meter::{OUT_OF_BUDGET, PER_CALL};
pub use expression::{EvaluationResult, Expression};
pub use value::{Variable, of_json};
