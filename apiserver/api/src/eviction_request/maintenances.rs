//! The maintenances that a request belongs to: an annotation that their controller writes, and a clause of messages
//! that names them.

use std::fmt;

use drydock_machinery::names::dns1123_subdomain;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::types::EvictionRequest;
use drydock_machinery::text::{ELLIPSIS, one_line};

/// Annotation of a request: a JSON list with name and reason of the maintenances that it belongs to, the oldest
/// first. Every client that may write the request may write it. It is for people; only the maintenance controller's own
/// requests are admitted by it, while one of the maintenances drains.
pub const MAINTENANCES_ANNOTATION: &str = "nodemaintenance.k8s.io/maintenances";
/// Annotation of a request: the node for which the maintenance controller asked. Its own requests are admitted by it
/// while one of the maintenances shows the node in its status.
pub const NODE_ANNOTATION: &str = "nodemaintenance.k8s.io/node";
/// Maximum number of maintenances that the annotation names.
pub const MAX_MAINTENANCES: usize = 3;
/// Maximum number of bytes of the annotation's value.
pub const MAX_MAINTENANCES_BYTES: usize = 512;

/// The beginning of every clause.
const BEGINNING: &str = "for NodeMaintenance";

/// A maintenance that a request belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceReference {
    /// Name of the maintenance.
    pub name: String,
    /// Its `spec.reason`, possibly truncated; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl MaintenanceReference {
    /// Returns the reference to the maintenance with this name and reason.
    pub fn new(name: &str, reason: &str) -> Self {
        Self { name: name.to_owned(), reason: reason.to_owned() }
    }
}

/// For example `tidy (RAM swap)`, or `tidy` without a reason.
impl fmt::Display for MaintenanceReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason.as_str() {
            "" => f.write_str(&self.name),
            reason => write!(f, "{} ({reason})", self.name),
        }
    }
}

/// Returns the annotation's value: as many of the first maintenances as fit. A reason that is too long is truncated
/// with an ellipsis.
pub fn encode(maintenances: &[MaintenanceReference]) -> String {
    let named: Vec<_> = maintenances.iter().filter(|m| is_name(&m.name)).take(MAX_MAINTENANCES).collect();
    let fitting = (0..=named.len()).rev().map(|count| named.get(..count).unwrap_or_default());
    // An empty list always fits.
    let named = fitting.into_iter().find(|named| bytes_for_reasons(named).is_some()).unwrap_or_default();
    let mut left = bytes_for_reasons(named).unwrap_or_default();
    let mut written = Vec::with_capacity(named.len());
    for (i, maintenance) in named.iter().enumerate() {
        // Bytes that a short reason does not use are available to the following ones.
        let reason = cut(&printable(&maintenance.reason), left / (named.len() - i));
        left -= escaped_len(&reason);
        written.push(MaintenanceReference { name: maintenance.name.clone(), reason });
    }
    to_json(&written)
}

/// Parses the value of the annotation. Returns an empty list if it is not such a list or is too long. Leaves out
/// items whose name cannot be that of a maintenance, and characters that would change how a line is displayed.
pub fn decode(value: &str) -> Vec<MaintenanceReference> {
    if value.len() > MAX_MAINTENANCES_BYTES {
        return Vec::new();
    }
    let items: Vec<Value> = serde_json::from_str(value).unwrap_or_default();
    let read = items.into_iter().filter_map(|item| serde_json::from_value(item).ok());
    let named = read.filter(|m: &MaintenanceReference| is_name(&m.name)).take(MAX_MAINTENANCES);
    named.map(|m| MaintenanceReference { reason: printable(&m.reason), ..m }).collect()
}

/// The maintenances in the annotation of a request.
pub fn of(request: &EvictionRequest) -> Vec<MaintenanceReference> {
    request.metadata.annotations.get(MAINTENANCES_ANNOTATION).map_or_else(Vec::new, |value| decode(value))
}

/// The clause that says why the request exists, for example `for NodeMaintenance tidy (RAM swap) on node r1-n1`.
/// Empty if there is no maintenance. An empty `node` is left out.
pub fn clause(maintenances: &[MaintenanceReference], node: &str) -> String {
    let each: Vec<String> = maintenances.iter().map(ToString::to_string).collect();
    let listed = match each.as_slice() {
        [] => return String::new(),
        [one] => format!("{BEGINNING} {one}"),
        [all @ .., last] => format!("{BEGINNING}s {} and {last}", all.join(", ")),
    };
    if node.is_empty() { listed } else { format!("{listed} on node {node}") }
}

/// The clause of a request, from its annotation and `status.podInfo`.
pub fn clause_of(request: &EvictionRequest) -> String {
    let node = request.status.pod_info.as_ref().map_or("", |pod| pod.node_name.as_str());
    clause(&of(request), node)
}

/// Prepends the clause to `text`, for example `for NodeMaintenance tidy on node n1: The pod is leaving`. A text that
/// already begins with this clause is returned unchanged.
pub fn with_clause(clause: &str, text: &str) -> String {
    match (clause.is_empty(), without_clause(clause, text)) {
        (true, _) => text.to_owned(),
        (_, "") => clause.to_owned(),
        (_, rest) => format!("{clause}: {rest}"),
    }
}

/// Removes the clause that [`with_clause`] prepended. A text without it is returned unchanged.
pub fn without_clause<'t>(clause: &str, text: &'t str) -> &'t str {
    match text.strip_prefix(clause) {
        Some("") => "",
        Some(rest) if !clause.is_empty() => rest.strip_prefix(": ").unwrap_or(text),
        _ => text,
    }
}

/// Whether a text begins with any clause about maintenances: the current one or an earlier one.
pub fn has_clause(text: &str) -> bool {
    let rest = text.strip_prefix(BEGINNING).map(|rest| rest.strip_prefix('s').unwrap_or(rest));
    rest.is_some_and(|rest| rest.starts_with(' '))
}

fn is_name(name: &str) -> bool {
    dns1123_subdomain(name).is_empty()
}

/// The text in one line, without control characters and without characters that reorder or hide the text next to
/// them.
fn printable(text: &str) -> String {
    one_line(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Bytes that are left for the reasons of these maintenances; `None` if the names alone do not fit.
fn bytes_for_reasons(named: &[&MaintenanceReference]) -> Option<usize> {
    // Each counts as if it had a reason, because the key of the reason needs space too.
    let lengths = named.iter().map(|m| m.name.len() + r#"{"name":"","reason":""},"#.len());
    MAX_MAINTENANCES_BYTES.checked_sub(lengths.sum::<usize>() + "[]".len())
}

/// Truncates a text so that its JSON string has at most `most` bytes without the quotes.
fn cut(text: &str, most: usize) -> String {
    if escaped_len(text) <= most {
        return text.to_owned();
    }
    let Some(mut left) = most.checked_sub(ELLIPSIS.len()) else { return String::new() };
    let fits = |c: &char| {
        let rest = left.checked_sub(escaped_len(c.encode_utf8(&mut [0; 4])));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let kept: String = text.chars().take_while(fits).collect();
    if kept.is_empty() { kept } else { kept + ELLIPSIS }
}

/// Length of a text in JSON, without the quotes. The text must not contain control characters.
fn escaped_len(text: &str) -> usize {
    text.len() + text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count()
}

fn to_json(written: &[MaintenanceReference]) -> String {
    // The value has only strings, so this cannot fail.
    serde_json::to_string(written).unwrap_or_default()
}

#[cfg(test)]
#[path = "maintenances_tests.rs"]
mod tests;
