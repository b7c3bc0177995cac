//! Objects as kubectl prints them (meta.k8s.io Table) and as controllers for any kind read them
//! (PartialObjectMetadata).

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::kind::{Column, Kind, Now};
use crate::metav1::time::parse_time;
use crate::object::Object;

/// What a row contains besides its cells (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// The object's metadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// Parses the option; the empty value is the default. `None` for a value that Kubernetes refuses.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "" | "Metadata" => Self::Metadata,
            "None" => Self::None,
            "Object" => Self::Object,
            _ => return None,
        })
    }
}

/// Options of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions<'a> {
    /// `meta.k8s.io/v1` or `meta.k8s.io/v1beta1`, as the client requested.
    pub api_version: &'a str,
    /// What each row contains besides its cells.
    pub include: IncludeObject,
    /// Whether the column definitions are included: not in a watch's events after the first.
    pub headers: bool,
    /// The time from which ages are computed.
    pub now: Now,
}

/// Returns a ListMeta without empty and absent parts.
pub fn list_meta(resource_version: &str, next: &str, remaining: Option<u64>) -> Map<String, Value> {
    let mut meta = Map::new();
    for (field, value) in [("resourceVersion", resource_version), ("continue", next)] {
        if !value.is_empty() {
            meta.insert(field.into(), value.into());
        }
    }
    if let Some(remaining) = remaining {
        meta.insert("remainingItemCount".into(), remaining.into());
    }
    meta
}

/// Returns a Table of these objects.
pub fn table<'o>(
    kind: &dyn Kind,
    objects: impl IntoIterator<Item = &'o Object>,
    meta: Map<String, Value>,
    options: TableOptions<'_>,
) -> Value {
    let rows: Vec<_> = objects.into_iter().map(|object| row(kind, object, options)).collect();
    let columns = if options.headers { columns(kind) } else { Value::Array(Vec::new()) };
    json!({
        "kind": "Table",
        "apiVersion": options.api_version,
        "metadata": meta,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// Returns an object's metadata as PartialObjectMetadata of this version of meta.k8s.io.
pub fn partial_object_metadata(object: &Object, api_version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": api_version,
        "metadata": object.metadata(),
    })
}

/// Returns one row.
pub fn row(kind: &dyn Kind, object: &Object, options: TableOptions<'_>) -> Value {
    let carried = match options.include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => partial_object_metadata(object, options.api_version),
        IncludeObject::Object => object.to_value(),
    };
    json!({"cells": kind.cells(object, options.now), "object": carried})
}

/// Returns the column definitions.
pub fn columns(kind: &dyn Kind) -> Value {
    kind.columns().iter().map(column).collect()
}

fn column(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.type_,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    })
}

/// Returns the AGE cell of an object: `5m`, or `<unknown>` without a creation time.
pub fn age(object: &Object, now: Now) -> String {
    let created =
        object.meta().and_then(|m| m.get("creationTimestamp")).and_then(|t| t.as_str()).and_then(parse_time);
    created.map_or_else(
        || "<unknown>".to_owned(),
        |created: Timestamp| human_duration(now.duration_since(created)),
    )
}

/// Formats a duration as kubectl prints ages (k8s.io/apimachinery/pkg/util/duration), with two or three significant
/// digits: `90s`, `5m30s`, `3h5m`, `2d3h`, `400d`, `3y20d`.
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        // Clocks may differ slightly.
        ..=-2 => "<invalid>".to_owned(),
        -1..=-1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}
