//! Strategic merge patches: merge patches that know which lists are merged, and by which key.
//!
//! What each directive does, in which order, and the words of refusals are those of
//! k8s.io/apimachinery/pkg/util/strategicpatch, down to the places where it is odd. Where that depends on the random
//! order of Go's maps, directives go before plain fields here, then by name; where it panics over a list or map that
//! stands for a key, we refuse; and where it compares each item with each, we look up.

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

/// How directives are named.
const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// Merges `patch` into `doc`, an object of this schema.
///
/// The patch is left as Go leaves it, which is what errors about the outcome show: without the directives that were
/// followed and without nulls in what was new.
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
