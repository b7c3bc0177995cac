//! How large an object may become by writes to the object itself: the status has room of its own, so that no writer can
//! fill an object until the status cannot be written any more. What the server records of writers does not count: who may write
//! a field must not depend on how long the names of others are.

use drydock_machinery::field::{Error, Path};
use drydock_machinery::object::{Size, json_len};
use drydock_machinery::{ApiError, Object};
use serde_json::Value;

use super::context::RequestContext;

/// Checks the size of a new object.
///
/// # Errors
/// 422 if it is too large.
pub fn check(request: &RequestContext, new: &Object) -> Result<(), ApiError> {
    match request.kind().max_bytes_without_status() {
        Some(most) => refuse_beyond(request, new, written(request, new, 0), most),
        None => Ok(()),
    }
}

/// Fits a changed object into the size that its kind allows. A write to the object
/// - that leaves it within the limit passes;
/// - that does not make it larger passes too, even if it is still too large;
/// - that makes its fields smaller, but its managed fields larger by more than that, passes: `new` gets back the
///   old managed fields, so that a finalizer or an entry of a list can always be removed;
/// - that makes it larger in any other way is refused, except for controllers.
///
/// A write to the status that makes the managed fields of the status larger than the kind allows leaves them as they
/// were: ever new names of field managers would fill the object, and nobody's report may be refused for those of others.
///
/// # Errors
/// 422 for the last.
pub fn fit(request: &RequestContext, new: &mut Object, old: &Object) -> Result<(), ApiError> {
    if request.on_status() {
        fit_status_managers(request, new, old);
        return Ok(());
    }
    let Some(most) = request.kind().max_bytes_without_status() else { return Ok(()) };
    let most_of_status = request.kind().max_bytes_of_status_managers().unwrap_or(usize::MAX);
    let size = written(request, new, Size::of_status_managers(old).min(most_of_status));
    if size.total() <= most {
        return Ok(());
    }
    let before = without_record(request, old);
    if size.total() <= before.total() {
        return Ok(());
    }
    if size.fields < before.fields {
        new.share_managed_fields(old);
        return Ok(());
    }
    refuse_beyond(request, new, size, most)
}

/// The size of what a write to the object itself has written. A client may send managed fields of the status too: those
/// beyond `before` bytes count, which are what was there, but no more than writes to the status may leave.
fn written(request: &RequestContext, new: &Object, before: usize) -> Size {
    let Size { fields, managed } = without_record(request, new);
    Size { fields, managed: managed + Size::of_status_managers(new).saturating_sub(before) }
}

/// The size without the status, and without the values that the server records.
fn without_record(request: &RequestContext, object: &Object) -> Size {
    let Size { fields, managed } = Size::without_status(object);
    let recorded = request.kind().recorded_fields().iter().filter_map(|path| recorded_value(object, path));
    Size { fields: fields.saturating_sub(recorded.map(json_len).sum()), managed }
}

/// The value at a dotted path outside of the status.
fn recorded_value<'o>(object: &'o Object, path: &str) -> Option<&'o Value> {
    let mut names = path.split('.');
    let top = names.next().filter(|name| *name != "status")?;
    names.try_fold(object.0.get(top)?, |value, name| value.get(name))
}

fn fit_status_managers(request: &RequestContext, new: &mut Object, old: &Object) {
    let most = request.kind().max_bytes_of_status_managers();
    let Some(most) = most.filter(|_| request.level.is_bound_by_size()) else { return };
    let bytes = Size::of_status_managers(new);
    if bytes > most && bytes > Size::of_status_managers(old) {
        new.share_managed_fields(old);
    }
}

fn refuse_beyond(request: &RequestContext, new: &Object, size: Size, most: usize) -> Result<(), ApiError> {
    if size.total() <= most || !request.level.is_bound_by_size() {
        return Ok(());
    }
    let part = |name: &str| new.0.get(name).map_or(0, |value| value.to_string().len());
    let in_metadata = part("metadata") + size.managed >= part("spec");
    let mut error = Error::too_long(Path::new(if in_metadata { "metadata" } else { "spec" }), most);
    error.detail = format!(
        "all of the object but its status counts, managed fields included, and is {} bytes",
        size.total()
    );
    let names = request.names();
    Err(ApiError::invalid(names.group, names.kind, new.name(), vec![error]))
}
