//! Operations on JSON values with a schema: the paths of a value, the differences of two values, merging and
//! removing.
//!
//! Atomic structs, maps and lists are one leaf; other lists are sets of scalars or maps by key.

mod compare;
mod decomposition;
mod merge;
mod to_set;
mod validate;

pub(super) use compare::compare_without;
pub use compare::{Comparison, compare};
pub use to_set::{remove_items, to_set};

pub(super) use merge::merge;
pub(super) use validate::validate;
