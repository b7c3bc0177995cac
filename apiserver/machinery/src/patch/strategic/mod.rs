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

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::schema::Schema;

/// The names of directives.
const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// Merges `patch` into `doc`, an object of this schema.
///
/// Changes `patch` as Go does, because errors about the result show it: removes the directives that were applied, and
/// the nulls in new values.
///
/// # Errors
/// 400 for directives of the wrong form; 500, as Kubernetes answers it, for a patch that does not fit the schema.
pub fn strategic_merge_patch(
    doc: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: &Schema,
) -> Result<(), ApiError> {
    merge::merge_map(doc, patch, schema).map_err(ApiError::from)
}
