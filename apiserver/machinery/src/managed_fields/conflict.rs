//! Conflicts of an apply with other managers, in kube-apiserver's words.

use super::managed::{Manager, Operation};
use super::path::PathElement;
use super::set::Set;
use crate::error::{ApiError, StatusCause};
use crate::quote::go_quote;

/// What the configuration would change that others own, by manager.
pub(super) type Conflicts = Vec<(Manager, Set)>;

/// Causes that are listed; a client that needs more has more than a conflict.
const MAX_CAUSES: usize = 1000;

/// 409 with a cause per field (managedfields/internal NewConflictError).
pub(super) fn conflict_error(conflicts: &Conflicts) -> ApiError {
    let mut fields: Vec<(usize, String)> = Vec::new();
    for (index, (_, set)) in conflicts.iter().enumerate() {
        set.for_each(&mut |path| fields.push((index, print_path(path))));
    }
    let who: Vec<String> = conflicts.iter().map(|(manager, _)| print_manager(manager)).collect();
    let message = message(&who, &fields);
    fields.truncate(MAX_CAUSES);
    let cause = |(index, field): (usize, String)| StatusCause {
        reason: "FieldManagerConflict".to_owned(),
        message: format!("conflict with {}", who[index]),
        field,
    };
    let causes = fields.into_iter().map(cause).collect();
    ApiError::conflict_with_causes(message, causes)
}

fn message(who: &[String], fields: &[(usize, String)]) -> String {
    if let [(index, field)] = fields {
        return format!("Apply failed with 1 conflict: conflict with {}: {field}", who[*index]);
    }
    let mut lines = Vec::new();
    for group in fields.chunk_by(|a, b| a.0 == b.0) {
        lines.push(format!("conflicts with {}:", who[group[0].0]));
        lines.extend(group.iter().map(|(_, field)| format!("- {field}")));
    }
    format!("Apply failed with {} conflicts: {}", fields.len(), lines.join("\n"))
}

fn print_path(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

fn print_manager(manager: &Manager) -> String {
    let mut out = go_quote(&manager.name);
    if !manager.subresource.is_empty() {
        out.push_str(&format!(" with subresource {}", go_quote(&manager.subresource)));
    }
    if manager.operation == Operation::Update {
        out.push_str(&format!(" using {}", manager.api_version));
    }
    out
}
