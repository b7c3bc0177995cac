//! meta.k8s.io Table of one object (k8s.io/apiserver/pkg/endpoints/handlers/response.go).

use drydock_machinery::ApiError;
use drydock_machinery::table::{self, IncludeObject, TableOptions};
use drydock_storage::storage::Stored;
use serde_json::Value;

use super::object::ObjectView;
use crate::request::query::Query;

/// `includeObject`; 400 for what it does not take.
pub fn include_object(query: &Query) -> Result<IncludeObject, ApiError> {
    let asked = query.get("includeObject").unwrap_or_default();
    IncludeObject::parse(asked).ok_or_else(|| {
        ApiError::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {asked:?}: must be 'Metadata', 'Object', 'None', or empty"
        ))
    })
}

/// A table of one row.
pub fn single(stored: &Stored, view: &ObjectView, version: &str, headers: bool) -> Value {
    let object = stored.object();
    let meta = table::list_meta(object.resource_version(), "", None);
    let api_version = format!("meta.k8s.io/{version}");
    let mut table = table::table(view.kind.as_ref(), [&*object], meta, options(view, &api_version, headers));
    if !headers {
        table["columnDefinitions"] = Value::Null;
    }
    table
}

/// One row of a list.
pub fn row(stored: &Stored, view: &ObjectView, version: &str) -> Value {
    let api_version = format!("meta.k8s.io/{version}");
    table::row(view.kind.as_ref(), &stored.object_not_kept(), options(view, &api_version, false))
}

fn options<'a>(view: &ObjectView, api_version: &'a str, headers: bool) -> TableOptions<'a> {
    TableOptions { api_version, include: view.include, headers, now: view.now }
}
