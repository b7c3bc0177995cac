//! Who asks for a maintenance: the user whose write last changed the stage or the node selector, recorded by the server in
//! `spec.username`. The drain plan and the last pod type do not change, and the reason drains nothing.

use drydock_machinery::Object;
use drydock_machinery::field::{Error, Path};
use serde_json::{Map, Value};

use super::types::NodeMaintenance;
use crate::MAX_USERNAME_BYTES;

const USERNAME: &str = "username";

/// Records the user in an object that is about to be written. What the client sent in the record is dropped.
pub(super) fn record(new: &mut Object, old: Option<&Object>, username: &str) {
    let before = old.and_then(|old| old.0.get("spec")).and_then(Value::as_object);
    let Some(Value::Object(spec)) = new.0.get_mut("spec") else { return };
    let recorded = match before {
        Some(before) if asks_the_same(spec, before) => before.get(USERNAME).cloned(),
        _ => Some(username.into()),
    };
    match recorded {
        Some(recorded) => spec.insert(USERNAME.to_owned(), recorded),
        None => spec.remove(USERNAME),
    };
}

fn asks_the_same(new: &Map<String, Value>, old: &Map<String, Value>) -> bool {
    ["stage", "nodeSelector"].into_iter().all(|field| new.get(field) == old.get(field))
}

/// The name of a user who changes what a maintenance asks for must not be longer than [`MAX_USERNAME_BYTES`].
pub(super) fn validate(new: &NodeMaintenance, old: Option<&NodeMaintenance>) -> Option<Error> {
    let is_new = old.is_none_or(|old| old.spec.username != new.spec.username);
    let path = || Path::new("spec").child(USERNAME);
    (is_new && new.spec.username.len() > MAX_USERNAME_BYTES)
        .then(|| Error::too_long(path(), MAX_USERNAME_BYTES))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn maintenance(stage: &str, node: &str, rest: &Value) -> Object {
        let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
        let mut spec = json!({"stage": stage, "nodeSelector": {"nodeSelectorTerms": [term]}});
        spec.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        Object::from(json!({ "spec": spec }).as_object().unwrap().clone())
    }

    fn recorded(new: &Object) -> &Value {
        &new.0["spec"][USERNAME]
    }

    #[test]
    fn the_user_who_last_changed_stage_or_selector_is_recorded_whatever_a_client_sends() {
        let forged = json!({"username": "ann"});
        let mut made = maintenance("Cordon", "n1", &forged);
        record(&mut made, None, "bob");
        assert_eq!(recorded(&made), "bob");
        for (stage, node, rest, user) in [
            ("Cordon", "n1", json!({"reason": "r"}), "bob"),
            ("Cordon", "n1", forged.clone(), "bob"),
            ("Drain", "n1", forged.clone(), "eve"),
            ("Cordon", "n2", forged, "eve"),
        ] {
            let mut new = maintenance(stage, node, &rest);
            record(&mut new, Some(&made), "eve");
            assert_eq!(recorded(&new), user, "{stage} {node} {rest}");
        }
    }

    /// It was stored before users were recorded.
    #[test]
    fn nobody_is_recorded_for_what_another_has_asked() {
        let old = maintenance("Drain", "n1", &json!({}));
        let mut new = maintenance("Drain", "n1", &json!({"username": "ann", "reason": "r"}));
        record(&mut new, Some(&old), "bob");
        assert!(new.0["spec"].get(USERNAME).is_none());
        record(&mut Object::default(), Some(&old), "bob");
        // What the guide advises.
        let mut moved = maintenance("Drain", "n2", &json!({}));
        record(&mut moved, Some(&old), "bob");
        assert_eq!(recorded(&moved), "bob");
    }

    #[test]
    fn a_user_with_a_name_that_is_too_long_changes_no_stage() {
        let named = |length: usize| {
            let mut maintenance = NodeMaintenance::default();
            maintenance.spec.username = "u".repeat(length);
            maintenance
        };
        assert_eq!(validate(&named(MAX_USERNAME_BYTES), None), None);
        let error = validate(&named(MAX_USERNAME_BYTES + 1), Some(&named(1))).unwrap();
        assert_eq!(error.to_string(), "spec.username: Too long: may not be more than 1024 bytes");
        assert_eq!(validate(&named(MAX_USERNAME_BYTES + 1), Some(&named(MAX_USERNAME_BYTES + 1))), None);
    }
}
