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
        Some(most) => refuse_beyond(request, new, Size::without_status(new), most),
        None => Ok(()),
    }
}

/// Fits a changed object into the size that its kind allows. A write
/// - that leaves it within the limit passes;
/// - that does not make it larger passes too, even if it is still too large;
/// - that makes its fields smaller, but its managed fields larger by more than that, passes: `new` gets back the
///   old managed fields, so that a finalizer or an entry of a list can always be removed;
/// - that makes it larger in any other way is refused, except for controllers.
///
/// # Errors
/// 422 for the last.
pub fn fit(request: &RequestContext, new: &mut Object, old: &Object) -> Result<(), ApiError> {
    let Some(most) = request.kind().max_bytes_without_status().filter(|_| !request.on_status()) else {
        return Ok(());
    };
    let size = Size::without_status(new);
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
