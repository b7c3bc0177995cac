//! Managed fields: which manager owns which field, through the machinery.

use std::borrow::Cow;
use std::sync::LazyLock;

use drydock_machinery::managed_fields::{self, FieldManager, PathElement, Set};
use drydock_machinery::{ApiError, Object, decode, go_json};
use serde_json::{Map, Value};

use super::context::RequestContext;
use super::patched;
use crate::request::write_options::WriteOptions;

/// What writes to the object itself do not own.
static STATUS: LazyLock<Set> = LazyLock::new(|| Set::of_fields(&[&["status"]]));
/// What writes to the status do not own where they may change metadata.
static SPEC: LazyLock<Set> = LazyLock::new(|| Set::of_fields(&[&["spec"]]));
/// What writes to the status do not own.
static ALL_BUT_STATUS: LazyLock<Set> = LazyLock::new(|| {
    Set::of_fields(&[
        &["spec"],
        &["metadata", "labels"],
        &["metadata", "annotations"],
        &["metadata", "finalizers"],
        &["metadata", "ownerReferences"],
    ])
});

/// Returns the new object, whose fields the writer's manager owns.
pub fn created(request: &RequestContext, object: Object, options: &WriteOptions) -> Object {
    with_manager(request, |manager| manager.update(None, object, &options.manager, request.now))
}

/// Returns the changed object, in which the writer's manager owns what changed.
pub fn updated(request: &RequestContext, object: Object, present: &Object, options: &WriteOptions) -> Object {
    with_manager(request, |manager| manager.update(Some(present), object, &options.manager, request.now))
}

/// The present object (`None` to create one) with an applied configuration merged in, and defaults.
pub fn applied(
    request: &RequestContext,
    patch: &[u8],
    present: Option<&Object>,
    options: &WriteOptions,
) -> Result<Object, ApiError> {
    let patch = match patched::applied(patch, request, options)? {
        Value::Object(patch) => patch,
        Value::Null => Map::new(),
        other => {
            let what = go_json::kind_of(&other);
            return Err(ApiError::bad_request(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {what} into \
                 Go value of type map[string]interface {{}}"
            )));
        }
    };
    let patch = Object::raw(patch);
    let of = format!("{}/{}", patch.namespace(), patch.name());
    let empty = empty(request);
    let live = present.unwrap_or(&empty);
    let applied = with_manager(request, |manager| {
        manager.apply(live, patch, &options.manager, options.force, request.now)
    })?;
    let mut object = match applied {
        // The configuration was not decoded as an object of the kind: numbers of the wrong type, nulls, empty lists
        // and malformed times are handled here.
        Some(new) => restored(new, request, &of)?,
        None => live.clone(),
    };
    request.kind().set_defaults(&mut object);
    Ok(object)
}

/// What an apply of the configuration `of` produced, as an object of the kind.
fn restored(mut new: Object, request: &RequestContext, of: &str) -> Result<Object, ApiError> {
    // The server has written the managed fields, so they need no decoding.
    let managed = new.take_managed_fields();
    let restored = decode::from_unstructured(new.into_value(), request.names(), request.kind().schema());
    let tracked = |(mut object, _): (Object, _)| {
        object.set_managed_fields(managed);
        object
    };
    let unconverted = |why| {
        let type_ = format!("{}, Kind={}", request.names().api_version(), request.names().kind);
        let why = format!("unable to convert unstructured object to {type_}: {why}");
        let message = format!("failed to convert new object ({of}; {type_}) to proper version: {why}");
        ApiError::new(500, "", message, None)
    };
    restored.map(tracked).map_err(|refusal| refusal.into_error(unconverted))
}

/// Restores the managed fields from before admission if admission left unreadable ones, and warns (k8s.io/apiserver
/// pkg/endpoints/handlers/fieldmanager/admission.go).
pub fn keep_readable(request: &RequestContext, object: &mut Object, before: &Object) {
    if let Err(why) = managed_fields::check(object) {
        object.share_managed_fields(before);
        request.warnings.add(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {why}"
        ));
    }
}

/// Keeps the old times where nothing but times changed.
pub fn ignore_timestamps(new: Object, old: &Object) -> Object {
    managed_fields::ignore_timestamps(new, old)
}

fn empty(request: &RequestContext) -> Object {
    let mut object = Object::default();
    object.0.insert("apiVersion".to_owned(), request.names().api_version().into());
    object.0.insert("kind".to_owned(), request.names().kind.into());
    object
}

fn with_manager<T>(request: &RequestContext, act: impl FnOnce(FieldManager<'_>) -> T) -> T {
    let (api_version, reset) = (request.names().api_version(), reset_fields(request));
    act(FieldManager {
        schema: request.kind().schema(),
        api_version: &api_version,
        kind: request.names().kind,
        subresource: &request.info.subresource,
        reset: &reset,
        versions: request.resource.versions.as_deref(),
    })
}

/// What the write does not own: the fields of the other endpoint, and those that only the server writes.
fn reset_fields(request: &RequestContext) -> Cow<'static, Set> {
    let of_endpoint: &'static Set = match (request.on_status(), request.kind().status_keeps_metadata()) {
        (false, _) => &STATUS,
        (true, true) => &ALL_BUT_STATUS,
        (true, false) => &SPEC,
    };
    let mut reset = Cow::Borrowed(of_endpoint);
    for &field in request.kind().recorded_fields() {
        let path: Vec<_> = field.split('.').map(PathElement::field).collect();
        reset.to_mut().insert(&path);
    }
    reset
}
