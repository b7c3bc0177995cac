//! Validates `metadata.managedFields` of a request.

use crate::field::{Error, ErrorList, Path, SHOWN_MAX, is_full};
use crate::object::ManagedFieldsEntry;
use crate::quote::is_printable;

const MANAGER_MAX: usize = 128;
const SUBRESOURCE_MAX: usize = 256;

/// Validates the entries of the metadata at `metadata`. Paths are created only for errors, because entries are hardly
/// ever wrong.
pub(super) fn validate(entries: &[ManagedFieldsEntry], metadata: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, entry) in entries.iter().enumerate() {
        if is_full(&errors) {
            break;
        }
        let path = |field: &str| metadata.child("managedFields").index(index).child(field);
        let (operation, fields_type) = (entry.operation.as_str(), entry.fields_type.as_str());
        if !matches!(operation, "Apply" | "Update") {
            errors.push(Error::invalid(path("operation"), operation, "must be `Apply` or `Update`"));
        }
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(Error::invalid(path("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        let manager = entry.manager.as_str();
        if !is_plain(manager) {
            errors.extend(validate_field_manager(manager, &path("manager")));
        }
        if entry.subresource.len() > SUBRESOURCE_MAX {
            errors.push(Error::too_long(path("subresource"), SUBRESOURCE_MAX));
        }
    }
    errors
}

/// Whether a manager's name is short enough and printable ASCII, as nearly all are, and so needs no further check.
fn is_plain(manager: &str) -> bool {
    manager.len() <= MANAGER_MAX && manager.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// A field manager's name: at most 128 bytes, printable.
pub fn validate_field_manager(manager: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.len() > MANAGER_MAX {
        errors.push(Error::too_long(path.clone(), MANAGER_MAX));
    }
    let looked_at = manager.char_indices().take_while(|(index, _)| *index < SHOWN_MAX);
    for (index, c) in looked_at.filter(|(_, c)| !is_printable(*c)) {
        if is_full(&errors) {
            break;
        }
        let detail = format!("invalid character U+{:04X} (at position {index})", u32::from(c));
        errors.push(Error::invalid(path.clone(), manager, detail));
    }
    errors
}
