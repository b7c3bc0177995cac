//! The finalizer that keeps a maintenance until its nodes are released.

use drydock_machinery::Object;
use serde_json::{Map, Value};

use super::types::FINALIZER;

/// Metadata fields that every write changes, or that are compared separately.
const APART: [&str; 3] = ["finalizers", "managedFields", "resourceVersion"];

/// Whether a write removes the finalizer and changes nothing else.
pub fn removes_only_finalizer(new: &Object, old: &Object) -> bool {
    let before = old.finalizers();
    let others = before.iter().filter(|finalizer| **finalizer != FINALIZER);
    before.contains(&FINALIZER)
        && others.eq(&new.finalizers())
        && same_but(&new.0, &old.0, &["metadata"])
        && same_metadata(new, old)
}

fn same_metadata(new: &Object, old: &Object) -> bool {
    let nothing = Map::new();
    same_but(new.meta().unwrap_or(&nothing), old.meta().unwrap_or(&nothing), &APART)
}

fn same_but(new: &Map<String, Value>, old: &Map<String, Value>, left_out: &[&str]) -> bool {
    let fields =
        |map: &Map<String, Value>| map.keys().filter(|key| !left_out.contains(&key.as_str())).count();
    let same =
        |(key, value): (&String, &Value)| left_out.contains(&key.as_str()) || old.get(key) == Some(value);
    fields(new) == fields(old) && new.iter().all(same)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use serde_json::json;

    use super::*;

    fn object(metadata: &Value, stage: &str) -> Object {
        let value = json!({ "metadata": metadata, "spec": { "stage": stage } });
        let Value::Object(map) = value else { panic!("no object") };
        Object::from(map)
    }

    fn held() -> Object {
        let metadata = json!({ "name": "m", "resourceVersion": "1", "finalizers": ["a/b", FINALIZER, "c/d"],
            "managedFields": [{ "manager": "a" }] });
        object(&metadata, "Complete")
    }

    #[test]
    fn a_write_that_only_takes_the_finalizer_away_is_told_from_all_others() {
        let released = json!({ "name": "m", "resourceVersion": "1", "finalizers": ["a/b", "c/d"],
            "managedFields": [{ "manager": "b" }] });
        let with = |field: &str, value: Value| {
            let mut metadata = released.clone();
            metadata[field] = value;
            object(&metadata, "Complete")
        };
        assert!(removes_only_finalizer(&object(&released, "Complete"), &held()));
        for (what, new) in [
            ("nothing goes", held()),
            ("another goes too", with("finalizers", json!(["a/b"]))),
            ("another goes instead", with("finalizers", json!([FINALIZER, "c/d"]))),
            ("another comes", with("finalizers", json!(["a/b", "c/d", "e/f"]))),
            ("a label comes", with("labels", json!({ "a": "b" }))),
            ("an owner comes", with("ownerReferences", json!([{ "uid": "u" }]))),
            ("the spec changes", object(&released, "Drain")),
        ] {
            assert!(!removes_only_finalizer(&new, &held()), "{what}");
        }
        assert!(!removes_only_finalizer(&object(&released, "Complete"), &object(&released, "Complete")));
    }

    #[test]
    fn the_last_finalizer_may_leave_an_empty_list_or_none() {
        let old = object(&json!({ "finalizers": [FINALIZER] }), "Complete");
        for new in [json!({}), json!({ "finalizers": [] })] {
            assert!(removes_only_finalizer(&object(&new, "Complete"), &old));
        }
    }
}
