//! JSON, and the trees that protobuf makes.

use serde_json::{Map, Value};

use super::recorded_fields;
use super::symbols::Symbols;
use super::text;

/// A JSON value with symbols in it.
pub fn normal(value: &Value, symbols: &Symbols<'_>) -> Value {
    match value {
        Value::String(text) => text::normal(text, symbols).into(),
        Value::Array(items) => items.iter().map(|item| normal(item, symbols)).collect(),
        Value::Object(map) => normal_map(map, symbols).into(),
        other => other.clone(),
    }
}

fn normal_map(map: &Map<String, Value>, symbols: &Symbols<'_>) -> Map<String, Value> {
    let recorded = recorded_fields(symbols.target.kind);
    let kept = map.iter().filter(|(key, _)| !recorded.contains(&key.as_str()));
    let mut normal_of: Map<String, Value> =
        kept.map(|(key, value)| (text::normal(key, symbols), normal(value, symbols))).collect();
    if is_ours_by_kind(map, symbols) && map.get("apiVersion") == Some(&symbols.api.api_version().into()) {
        normal_of.insert("apiVersion".into(), "<apiVersion>".into());
    }
    if let (Some(Value::Object(meta)), Some(Value::Object(normal_meta))) =
        (map.get("metadata"), normal_of.get_mut("metadata"))
    {
        normal_metadata(meta, normal_meta, symbols);
    }
    if let Some(Value::Array(cells)) = normal_of.get_mut("cells") {
        cells.iter_mut().filter(|cell| is_age(cell)).for_each(|cell| *cell = "<age>".into());
    }
    if let Some(Value::Array(entries)) = normal_of.get_mut("managedFields")
        && symbols.record.saw_the_clock_move()
    {
        entries.sort_by_cached_key(place_of_entry);
    }
    if map.get("kind").is_some_and(|kind| kind == "Status") {
        name_the_core_group(&mut normal_of, symbols);
        sort_conflicts(&mut normal_of);
    }
    normal_of
}

/// The place of an entry of managed fields (k8s.io/apimachinery pkg/util/managedfields/internal, sortEncodedManagedFields),
/// where all times of a stretch are equal. If the clock moved within a stretch, the server has sorted by other times.
fn place_of_entry(entry: &Value) -> [String; 6] {
    let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let time = text("time");
    // What a client has set is older than the run.
    let age = if time.starts_with('<') { format!("{:04}", time.len()) } else { String::new() };
    [text("operation"), age, time, text("manager"), text("apiVersion"), text("subresource")]
}

/// Sorts the conflicts with several managers: Go walks a map in another order each time.
fn sort_conflicts(status: &mut Map<String, Value>) {
    let causes = status.get_mut("details").and_then(|details| details["causes"].as_array_mut());
    if let Some(causes) = causes.filter(|all| all.iter().all(|one| one["reason"] == "FieldManagerConflict")) {
        causes.sort_by_key(Value::to_string);
    }
}

/// Objects and lists of the target, and entries of managed fields: elsewhere `v1` may be something else.
fn is_ours_by_kind(map: &Map<String, Value>, symbols: &Symbols<'_>) -> bool {
    let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
    kind.strip_suffix("List").unwrap_or(kind) == symbols.target.kind || map.contains_key("fieldsType")
}

fn normal_metadata(meta: &Map<String, Value>, normal_meta: &mut Map<String, Value>, symbols: &Symbols<'_>) {
    let text = |key: &str| meta.get(key).and_then(Value::as_str);
    if let Some(revision) = text("resourceVersion") {
        let of_object = text("name").is_some();
        let symbol = if of_object { symbols.revision(revision) } else { symbols.state(revision) };
        normal_meta.insert("resourceVersion".into(), symbol.into());
    }
    if let Some(token) = text("continue") {
        let symbol = text::normal(&symbols.token(token), symbols);
        normal_meta.insert("continue".into(), symbol.into());
    }
}

/// The core group's name is empty, and details leave an empty name out. It is put in here, so that our answer
/// must have our group's name at the same place.
fn name_the_core_group(status: &mut Map<String, Value>, symbols: &Symbols<'_>) {
    if let Some(Value::Object(details)) = status.get_mut("details")
        && symbols.api.group.is_empty()
        && details
            .get("kind")
            .is_some_and(|kind| kind == symbols.target.kind || kind == symbols.target.plural)
    {
        details.insert("group".into(), "<group>".into());
    }
}

fn is_age(cell: &Value) -> bool {
    let digits = cell.as_str().and_then(|text| text.strip_suffix('s'));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// A message of protobuf with symbols in it.
pub fn normal_tree(tree: &Value, symbols: &Symbols<'_>) -> Value {
    match tree {
        Value::Array(fields) => normal_message(fields, symbols).into(),
        Value::Object(map) if map.contains_key("k8s") => {
            map.iter().map(|(key, value)| (key.clone(), normal_tree(value, symbols))).collect()
        }
        Value::Number(number) => match number.as_i64().and_then(|second| symbols.epoch(second)) {
            Some(epoch) => format!("<time {epoch}>").into(),
            None => tree.clone(),
        },
        other => normal(other, symbols),
    }
}

/// TypeMeta{apiVersion = 1, kind = 2}, ObjectMeta{uid = 5, resourceVersion = 6}, ListMeta{resourceVersion = 2,
/// continue = 3} and managed fields{operation = 2, apiVersion = 3} are known by what else they hold.
fn normal_message(fields: &[Value], symbols: &Symbols<'_>) -> Vec<Value> {
    let text = |number: u64| {
        fields.iter().find(|field| field[0] == number).and_then(|field| field[1].as_str()).unwrap_or_default()
    };
    let of_object = text(5).len() == 36 && !text(6).is_empty();
    let of_list = text(1).is_empty() && text(2).parse::<u64>().is_ok();
    let of_kind = text(2).strip_suffix("List").unwrap_or(text(2)) == symbols.target.kind;
    let managed = matches!(text(2), "Apply" | "Update");
    let one = |field: &Value| {
        let (number, value) = (field[0].as_u64().unwrap_or_default(), &field[1]);
        let said = value.as_str().unwrap_or_default();
        let symbol = match number {
            6 if of_object => symbols.revision(said).into(),
            // This is the version of a bookmark.
            6 if text(1).is_empty() && text(5).is_empty() && said.parse::<u64>().is_ok() => {
                symbols.state(said).into()
            }
            2 if of_list => symbols.state(said).into(),
            3 if of_list => text::normal(&symbols.token(said), symbols).into(),
            1 if of_kind && said == symbols.api.api_version() => "<apiVersion>".into(),
            3 if managed && said == symbols.api.api_version() => "<apiVersion>".into(),
            _ => normal_tree(value, symbols),
        };
        serde_json::json!([number, symbol])
    };
    if fields.iter().all(|field| field.as_array().is_some_and(|pair| pair.len() == 2 && pair[0].is_u64())) {
        fields.iter().map(one).collect()
    } else {
        fields.iter().map(|field| normal_tree(field, symbols)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The suite failed on a machine so busy that a second passed in each of five runs.
    #[test]
    fn entries_of_one_stretch_are_in_the_order_that_equal_times_give() {
        let entry = |operation: &str, time: &str, manager: &str| json!({"operation": operation, "time": time, "manager": manager});
        let sorted = [
            entry("Apply", "2001-01-01T00:00:00Z", "z"),
            entry("Apply", "<time 0>", "a"),
            entry("Apply", "<time 9>", "a"),
            entry("Apply", "<time 10>", "a"),
            entry("Update", "<time 0>", "three"),
            entry("Update", "<time 0>", "two"),
        ];
        let mut entries = sorted.to_vec();
        entries.reverse();
        entries.sort_by_cached_key(place_of_entry);
        assert_eq!(entries, sorted);
    }
}
