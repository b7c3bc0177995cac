//! Conflicts of an apply with other managers, with kube-apiserver's messages.

use super::managed::{Manager, ManagerOperation};
use super::path::PathElement;
use super::set::Set;
use crate::error::{ApiError, StatusCause};
use crate::field::cut;
use crate::quote::go_quote;

/// The fields of other managers that the configuration would change, by manager.
pub(super) type Conflicts = Vec<(Manager, Set)>;

/// Maximum number of causes listed. A client that would need more has a larger problem than a conflict.
const MAX_CAUSES: usize = 1000;
/// Maximum number of bytes of a path in a cause.
const PATH_SHOWN: usize = 1024;

/// The 409, with one cause for each field (managedfields/internal NewConflictError).
pub(super) fn conflict_error(conflicts: &Conflicts) -> ApiError {
    let mut conflicts: Vec<&(Manager, Set)> = conflicts.iter().collect();
    conflicts.sort_by_cached_key(|(manager, _)| identifier(manager));
    let (mut fields, mut count): (Vec<(usize, String)>, usize) = (Vec::new(), 0);
    for (index, (_, set)) in conflicts.iter().enumerate() {
        set.for_each(&mut |path| {
            count += 1;
            if fields.len() < MAX_CAUSES {
                fields.push((index, cut(print_path(path), PATH_SHOWN)));
            }
        });
    }
    let who: Vec<String> = conflicts.iter().map(|(manager, _)| print_manager(manager)).collect();
    let message = message(&who, &fields, count);
    let cause = |(index, field): (usize, String)| StatusCause {
        reason: "FieldManagerConflict".to_owned(),
        message: format!("conflict with {}", who[index]),
        field,
    };
    let causes = fields.into_iter().map(cause).collect();
    ApiError::conflict_with_causes(message, causes)
}

/// `fields` are the first of `count` fields.
fn message(who: &[String], fields: &[(usize, String)], count: usize) -> String {
    if let [(index, field)] = fields {
        return format!("Apply failed with 1 conflict: conflict with {}: {field}", who[*index]);
    }
    let mut lines = Vec::new();
    for group in fields.chunk_by(|a, b| a.0 == b.0) {
        lines.push(format!("conflicts with {}:", who[group[0].0]));
        lines.extend(group.iter().map(|(_, field)| format!("- {field}")));
    }
    if count > fields.len() {
        lines.push("- ...".to_owned());
    }
    format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
}

/// Returns the text that identifies a manager in kube-apiserver, and by which managers are sorted
/// (BuildManagerIdentifier).
fn identifier(manager: &Manager) -> String {
    let operation = if manager.operation == ManagerOperation::Update { "Update" } else { "Apply" };
    let mut out = format!("{{\"manager\":{},\"operation\":\"{operation}\"", go_quote(&manager.name));
    for (field, value) in [("apiVersion", &manager.api_version), ("subresource", &manager.subresource)] {
        if !value.is_empty() {
            out.push_str(&format!(",\"{field}\":{}", go_quote(value)));
        }
    }
    out + "}"
}

fn print_path(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

fn print_manager(manager: &Manager) -> String {
    let mut out = go_quote(&manager.name);
    if !manager.subresource.is_empty() {
        out.push_str(&format!(" with subresource {}", go_quote(&manager.subresource)));
    }
    if manager.operation == ManagerOperation::Update {
        out.push_str(&format!(" using {}", manager.api_version));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managers_come_in_the_order_of_their_identifiers() {
        let manager = |operation, api_version: &str, subresource: &str| Manager {
            name: "m".to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        };
        let mut sorted = [
            manager(ManagerOperation::Update, "a/v1", ""),
            manager(ManagerOperation::Apply, "", ""),
            manager(ManagerOperation::Update, "a/v1", "status"),
            manager(ManagerOperation::Apply, "", "status"),
        ];
        sorted.sort_by_cached_key(identifier);
        let printed = sorted.map(|manager| print_manager(&manager));
        let status = r#""m" with subresource "status""#;
        let [update, with_status] = [r#""m" using a/v1"#.to_owned(), format!("{status} using a/v1")];
        assert_eq!(printed, [status.to_owned(), r#""m""#.to_owned(), with_status, update]);
    }
}
