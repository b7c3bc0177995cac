//! Merge patches of the objects of our API.

use drydock_api::metav1::ObjectMeta;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Returns the patch of the fields of a status that differ (null for those that are gone), with the UID and
/// the resourceVersion that the decision was made on. `foreign` fields belong to other writers, and the patch
/// does not contain them.
pub fn status<S: Serialize>(meta: &ObjectMeta, old: &S, new: &S, foreign: &[&str]) -> Value {
    let (old, new) = (as_map(old), as_map(new));
    let changed = new.iter().filter(|(field, value)| old.get(*field) != Some(value));
    let changed = changed.map(|(field, value)| (field.clone(), value.clone()));
    let gone = old.keys().filter(|field| !new.contains_key(*field)).map(|field| (field.clone(), Value::Null));
    let is_ours = |(field, _): &(String, Value)| !foreign.contains(&field.as_str());
    let fields: Map<String, Value> = changed.chain(gone).filter(is_ours).collect();
    json!({
        "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version },
        "status": fields,
    })
}

fn as_map(status: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields that had to be in a list of all fields: one that the list lacked was never cleared.
    #[test]
    fn what_differs_is_written_what_is_gone_is_removed_and_what_is_foreign_is_left() {
        let meta = ObjectMeta { uid: "u".into(), resource_version: "7".into(), ..ObjectMeta::default() };
        let old = json!({ "same": 1, "other": 1, "gone": 1, "theirs": 1, "theirs too": 1 });
        let new = json!({ "same": 1, "other": { "a": 0 }, "new": [], "theirs": 2 });
        let wanted = json!({
            "metadata": { "uid": "u", "resourceVersion": "7" },
            "status": { "other": { "a": 0 }, "new": [], "gone": null },
        });
        assert_eq!(status(&meta, &old, &new, &["theirs", "theirs too"]), wanted);
    }
}
