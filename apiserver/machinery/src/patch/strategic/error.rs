//! The errors of a strategic merge patch, and their responses.

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::go_format::{as_text, plain, type_name};
use crate::quote::go_quote;

/// Why a patch was refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Error {
    /// A directive has the wrong form: 400.
    Format(&'static str),
    /// Lists of lists: 422.
    ListOfLists,
    /// Any other error: Kubernetes reports it as an internal error.
    Other(String),
}

pub(super) type Result<T> = std::result::Result<T, Error>;

pub(super) const BAD_DELETION: Error = Error::Format("invalid patch format of primitive list");
pub(super) const BAD_RETAIN_KEYS: Error = Error::Format("invalid patch format of retainKeys");
pub(super) const BAD_ORDER: Error = Error::Format("invalid patch format of setElementOrder list");
/// kube-apiserver panics for this.
pub(super) const INCOMPARABLE: Error =
    Error::Format("lists are merged by text, numbers and booleans: a list or a map cannot stand for a key");

const LIST: &str = "[]interface {}";
const MAP: &str = "map[string]interface {}";

impl Error {
    pub(super) fn no_list(given: &Value) -> Self {
        Self::Other(format!("expected a {LIST}, but received a {}", type_name(given)))
    }

    pub(super) fn no_map(given: &Value) -> Self {
        Self::Other(format!("expected a {MAP}, but received a {}", type_name(given)))
    }

    pub(super) fn no_merge_key(item: &Map<String, Value>, key: &str) -> Self {
        let item = plain(&Value::Object(item.clone()));
        Self::Other(format!("map: {item} does not contain declared merge key: {key}"))
    }

    pub(super) fn no_field(structure: &str, field: &str) -> Self {
        let field = go_quote(field);
        Self::Other(format!("unable to find api field in struct {structure} for the json field {field}"))
    }

    pub(super) fn unknown_directive(directive: &Value, map: &Map<String, Value>) -> Self {
        let (directive, map) = (as_text(directive), plain(&Value::Object(map.clone())));
        Self::Other(format!("unknown patch type: {directive} in map: {map}"))
    }

    pub(super) fn mixed(lists: &[&[Value]]) -> Self {
        let lists = lists.iter().map(|list| plain(&list.to_vec().into())).collect::<Vec<_>>().join(" ");
        Self::Other(format!("list element types are not identical: [{lists}]"))
    }

    pub(super) fn order_differs(patch: &[Value], order: &[Value]) -> Self {
        let (patch, order) = (plain(&patch.to_vec().into()), plain(&order.to_vec().into()));
        Self::Other(format!(
            "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
        ))
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Format(message) => Self::bad_request(message),
            Error::ListOfLists => Self::new(
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
                None,
            ),
            Error::Other(message) => Self::new(500, "", message, None),
        }
    }
}
