//! Strategic merge patches: merge patches that know which lists are merged, and by which key.
//!
//! The effect of each directive, their order, and the error messages are those of
//! k8s.io/apimachinery/pkg/util/strategicpatch, including its oddities. Where its result depends on the random order
//! of Go's maps, this implementation applies directives before plain fields, and then sorts by name; where it panics
//! because a key is a list or a map, this one fails; and where it compares each item with each other one, this one
//! uses a lookup table.

mod error;
mod keys;
mod list;
mod lookup;
mod merge;
mod order;
#[cfg(test)]
mod tests;

pub use merge::strategic_merge_patch;
