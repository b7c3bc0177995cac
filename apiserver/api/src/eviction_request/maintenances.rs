//! Which maintenances a request is for: an annotation that their controller writes, and the clause that says it.

use std::fmt;

use drydock_machinery::names::dns1123_subdomain;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::types::EvictionRequest;
use crate::node_maintenance::NodeMaintenance;
use crate::text::{ELLIPSIS, one_line};

/// Annotation of a request: a JSON list of name and reason of the maintenances that it is for, the oldest first. Anybody
/// who may write the request may write it: it is for people, and decides nothing.
pub const MAINTENANCES_ANNOTATION: &str = "nodemaintenance.k8s.io/maintenances";
/// Most maintenances that the annotation names.
pub const MAX_MAINTENANCES: usize = 3;
/// Most bytes of the annotation's value.
pub const MAX_MAINTENANCES_BYTES: usize = 512;

/// What every clause about maintenances begins with.
const BEGINNING: &str = "for NodeMaintenance";

/// A maintenance that a request is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceReference {
    /// Its name.
    pub name: String,
    /// Its `spec.reason`, which may be cut; empty if it gives none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl MaintenanceReference {
    /// Names a maintenance, with its reason.
    pub fn to(maintenance: &NodeMaintenance) -> Self {
        Self { name: maintenance.metadata.name.clone(), reason: maintenance.spec.reason.clone() }
    }
}

/// As in `tidy (RAM swap)`, or `tidy` without a reason.
impl fmt::Display for MaintenanceReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason.as_str() {
            "" => f.write_str(&self.name),
            reason => write!(f, "{} ({reason})", self.name),
        }
    }
}

/// The annotation's value: the first of these that there is room for. A reason that is too long ends in an ellipsis.
pub fn encode(maintenances: &[MaintenanceReference]) -> String {
    let named: Vec<_> = maintenances.iter().filter(|m| is_name(&m.name)).take(MAX_MAINTENANCES).collect();
    let fitting = (0..=named.len()).rev().map(|count| named.get(..count).unwrap_or_default());
    // An empty list fits always.
    let named = fitting.into_iter().find(|named| room(named).is_some()).unwrap_or_default();
    let mut room = room(named).unwrap_or_default();
    let mut written = Vec::with_capacity(named.len());
    for (i, maintenance) in named.iter().enumerate() {
        // What a short reason leaves goes to those after it.
        let reason = cut(&printable(&maintenance.reason), room / (named.len() - i));
        room -= escaped_len(&reason);
        written.push(MaintenanceReference { name: maintenance.name.clone(), reason });
    }
    to_json(&written)
}

/// The maintenances that an annotation's value names. What is no such list or is too long names none; of a list, items
/// that name no possible maintenance are left out, and characters that would change how a line is shown.
pub fn decode(value: &str) -> Vec<MaintenanceReference> {
    if value.len() > MAX_MAINTENANCES_BYTES {
        return Vec::new();
    }
    let items: Vec<Value> = serde_json::from_str(value).unwrap_or_default();
    let read = items.into_iter().filter_map(|item| serde_json::from_value(item).ok());
    let named = read.filter(|m: &MaintenanceReference| is_name(&m.name)).take(MAX_MAINTENANCES);
    named.map(|m| MaintenanceReference { reason: printable(&m.reason), ..m }).collect()
}

/// The maintenances that a request's annotation names.
pub fn of(request: &EvictionRequest) -> Vec<MaintenanceReference> {
    request.metadata.annotations.get(MAINTENANCES_ANNOTATION).map_or_else(Vec::new, |value| decode(value))
}

/// Why there is a request, as in `for NodeMaintenance tidy (RAM swap) on node r1-n1`. Empty without a maintenance; an
/// empty `node` is not named.
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

/// `text` behind a clause, as in `for NodeMaintenance tidy on node n1: The pod is leaving`. A text that has the clause
/// already stays as it is.
pub fn with_clause(clause: &str, text: &str) -> String {
    match (clause.is_empty(), without_clause(clause, text)) {
        (true, _) => text.to_owned(),
        (_, "") => clause.to_owned(),
        (_, rest) => format!("{clause}: {rest}"),
    }
}

/// What [`with_clause`] has put behind the clause; a text without it stays as it is.
pub fn without_clause<'t>(clause: &str, text: &'t str) -> &'t str {
    match text.strip_prefix(clause) {
        Some("") => "",
        Some(rest) if !clause.is_empty() => rest.strip_prefix(": ").unwrap_or(text),
        _ => text,
    }
}

/// Whether a text begins with a clause about maintenances, be it this one or one that was true before.
pub fn has_clause(text: &str) -> bool {
    let rest = text.strip_prefix(BEGINNING).map(|rest| rest.strip_prefix('s').unwrap_or(rest));
    rest.is_some_and(|rest| rest.starts_with(' '))
}

fn is_name(name: &str) -> bool {
    dns1123_subdomain(name).is_empty()
}

/// The text in one line: without control characters, and without those that reorder or hide what stands beside them.
fn printable(text: &str) -> String {
    one_line(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Bytes that are left for the reasons of these maintenances; none if their names alone are too long.
fn room(named: &[&MaintenanceReference]) -> Option<usize> {
    // Each as if it had a reason, whose key takes room too.
    let lengths = named.iter().map(|m| m.name.len() + r#"{"name":"","reason":""},"#.len());
    MAX_MAINTENANCES_BYTES.checked_sub(lengths.sum::<usize>() + "[]".len())
}

/// The first characters of a text, so that its JSON has at most `room` bytes without the quotes.
fn cut(text: &str, room: usize) -> String {
    if escaped_len(text) <= room {
        return text.to_owned();
    }
    let Some(mut room) = room.checked_sub(ELLIPSIS.len()) else { return String::new() };
    let fits = |c: &char| {
        let left = room.checked_sub(escaped_len(c.encode_utf8(&mut [0; 4])));
        room = left.unwrap_or(0);
        left.is_some()
    };
    let kept: String = text.chars().take_while(fits).collect();
    if kept.is_empty() { kept } else { kept + ELLIPSIS }
}

/// Bytes of a text without control characters in JSON, without the quotes.
fn escaped_len(text: &str) -> usize {
    text.len() + text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count()
}

fn to_json(written: &[MaintenanceReference]) -> String {
    // Strings alone: this cannot fail.
    serde_json::to_string(written).unwrap_or_default()
}

#[cfg(test)]
#[path = "maintenances_tests.rs"]
mod tests;
