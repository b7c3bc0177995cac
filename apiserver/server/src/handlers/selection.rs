//! Which objects a request on a collection is about.

use std::sync::Arc;

use drydock_machinery::field_mask::FieldMask;
use drydock_machinery::selector::{FieldSelector, LabelRequirements};
use drydock_machinery::{ApiError, Object};
use drydock_storage::storage::{RequiredField, Scope, Selection};

use super::context::RequestContext;

/// The scope of a list, watch or deletecollection.
pub fn scope(request: &RequestContext) -> Result<Scope, ApiError> {
    let query = &request.info.query;
    let labels = LabelRequirements::parse(query.get("labelSelector").unwrap_or_default())?;
    let fields = field_selector(request)?;
    let namespace = namespace(request, &fields);
    let single = fields
        .required_value("metadata.name")
        .filter(|_| !request.names().namespaced || !namespace.is_empty());
    let (prefix, single) = match single {
        Some(name) => (request.key_of(&namespace, name), true),
        None if namespace.is_empty() => (String::new(), false),
        None => (format!("{namespace}/"), false),
    };
    Ok(Scope { prefix, single, matches: selection(labels, fields) })
}

/// The field selector; a name in the URL counts as one.
fn field_selector(request: &RequestContext) -> Result<FieldSelector, ApiError> {
    let own = request.kind().selectable_fields();
    let fields = FieldSelector::parse(request.info.query.get("fieldSelector").unwrap_or_default(), own)?;
    let name = request.info.name.as_str();
    if name.is_empty() || fields.required_value("metadata.name") == Some(name) {
        return Ok(fields);
    }
    if !fields.is_empty() {
        return Err(ApiError::bad_request("fieldSelector metadata.name doesn't match requested name"));
    }
    let escaped = name.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
    FieldSelector::parse(&format!("metadata.name={escaped}"), own)
}

/// The namespace of the URL, or the one that a field selector demands.
fn namespace(request: &RequestContext, fields: &FieldSelector) -> String {
    if !request.names().namespaced {
        return String::new();
    }
    if !request.info.namespace.is_empty() {
        return request.info.namespace.clone();
    }
    let selected = fields.required_value("metadata.namespace").unwrap_or_default();
    if selected.contains('/') { String::new() } else { selected.to_owned() }
}

fn selection(labels: LabelRequirements, fields: FieldSelector) -> Option<Selection> {
    if labels.is_empty() && fields.is_empty() {
        return None;
    }
    let reads = FieldMask::of(fields.paths().chain((!labels.is_empty()).then_some("metadata.labels")));
    let requires = required(&labels, &fields);
    let bytes = labels.bytes() + fields.bytes();
    let accepts = move |object: &Object| labels.matches(object) && fields.matches(object);
    Some(Selection { reads: Arc::new(reads), requires, bytes, accepts: Arc::new(accepts) })
}

/// A field that must have one value: a label, else a field of the kind's own. Name and namespace are in the key.
fn required(labels: &LabelRequirements, fields: &FieldSelector) -> Option<RequiredField> {
    let label = labels.required_value().map(|(key, value)| (vec!["metadata", "labels", key], value));
    let own = fields.terms().iter().find(|term| !term.negated && !term.field.starts_with("metadata."));
    let (path, value) =
        label.or_else(|| own.map(|term| (term.field.split('.').collect(), term.value.as_str())))?;
    Some(RequiredField { path: path.into_iter().map(str::to_owned).collect(), value: value.to_owned() })
}
