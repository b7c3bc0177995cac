//! How large an object may become by writes to the object itself: the status has room of its own, so that no writer can
//! fill an object until the status cannot be written any more.

use drydock_machinery::field::{Error, Path};
use drydock_machinery::object::Size;
use drydock_machinery::{ApiError, Object};

use super::context::RequestContext;

/// Checks the size of a new object.
///
/// # Errors
/// 422 if it is too large.
pub fn check(request: &RequestContext, new: &Object) -> Result<(), ApiError> {
    match request.kind().max_bytes_without_status() {
        Some(most) => refuse_beyond(request, new, written(new, 0), most),
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
    let size = written(new, Size::of_status_managers(old).min(most_of_status));
    if size.total() <= most {
        return Ok(());
    }
    let before = Size::without_status(old);
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
fn written(new: &Object, before: usize) -> Size {
    let Size { fields, managed } = Size::without_status(new);
    Size { fields, managed: managed + Size::of_status_managers(new).saturating_sub(before) }
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
