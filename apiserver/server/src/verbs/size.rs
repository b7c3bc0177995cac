//! How large an object may become by writes to the object itself: the status has room of its own, so that nobody can fill
//! an object until the status cannot be written any more.

use drydock_machinery::field::{Error, Path};
use drydock_machinery::object::Size;
use drydock_machinery::{ApiError, Object};

use super::call::Call;
use crate::flow_control::PriorityLevel;

const STATUS: &str = "status";

/// 422 for a new object that is too large.
pub fn check_new(call: &Call, new: &Object) -> Result<(), ApiError> {
    match call.kind().max_bytes_without_status() {
        Some(most) => refuse_beyond(call, new, Size::without(new, STATUS), most),
        None => Ok(()),
    }
}

/// 422 for a write that makes an object too large, or one that is too large yet larger. One that takes something away
/// passes: a finalizer, or an entry of a list. If what it does to the managed fields would outweigh that, they stay as
/// they were.
pub fn check_changed(call: &Call, new: &mut Object, old: &Object) -> Result<(), ApiError> {
    let Some(most) = call.kind().max_bytes_without_status().filter(|_| !call.on_status()) else {
        return Ok(());
    };
    let size = Size::without(new, STATUS);
    if size.total() <= most {
        return Ok(());
    }
    let before = Size::without(old, STATUS);
    if size.total() <= before.total() {
        return Ok(());
    }
    if size.fields < before.fields {
        new.share_managed_fields(old);
        return Ok(());
    }
    refuse_beyond(call, new, size, most)
}

fn refuse_beyond(call: &Call, new: &Object, size: Size, most: usize) -> Result<(), ApiError> {
    if size.total() <= most || call.levels.of(&call.user) == PriorityLevel::Controllers {
        return Ok(());
    }
    let part = |name: &str| new.0.get(name).map_or(0, |value| value.to_string().len());
    let in_metadata = part("metadata") + size.managed >= part("spec");
    let mut error = Error::too_long(Path::new(if in_metadata { "metadata" } else { "spec" }), most);
    error.detail = format!(
        "all of the object but its status counts, managed fields included, and is {} bytes",
        size.total()
    );
    let names = call.names();
    Err(ApiError::invalid(names.group, names.kind, new.name(), vec![error]))
}
