//! Requests that stand in the way of a pod's eviction: they have the name that the pod's own must have, and serve nobody.

use drydock_api::eviction_request::EvictionRequest;
use serde_json::Value;

/// What is said of a request that was deleted and that finalizers keep. Its deletion cancelled the eviction, and another
/// request can be made only when it is gone.
pub(crate) fn why_held(request: &EvictionRequest) -> Option<String> {
    let finalizers = &request.metadata.finalizers;
    if !request.is_being_deleted() || finalizers.is_empty() {
        return None;
    }
    let named = |finalizer: &String| {
        let member = format!("v:{}", Value::from(finalizer.as_str()));
        set_by(finalizer, &managers(request, &["f:metadata", "f:finalizers", &member]))
    };
    let named: Vec<String> = finalizers.iter().map(named).collect();
    Some(format!(
        "The pod's EvictionRequest is being deleted and kept by its finalizers: {}",
        named.join(", ")
    ))
}

fn set_by(what: &str, managers: &[&str]) -> String {
    match managers {
        [] => what.to_owned(),
        managers => format!("{what} (set by {})", managers.join(", ")),
    }
}

/// Field managers of the field at this path of FieldsV1.
fn managers<'r>(request: &'r EvictionRequest, path: &[&str]) -> Vec<&'r str> {
    let owns = |entry: &&Value| {
        let field = path.iter().try_fold(&entry["fieldsV1"], |fields, element| fields.get(element));
        field.is_some()
    };
    let owners = request.metadata.managed_fields.iter().filter(owns);
    owners.filter_map(|entry| entry["manager"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn request(metadata: &Value) -> EvictionRequest {
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn each_finalizer_is_named_with_those_who_set_it() {
        let owns = |manager: &str, finalizers: &[&str]| {
            let set = finalizers.iter().map(|f| (format!("v:\"{f}\""), json!({})));
            let set: serde_json::Map<String, Value> = set.collect();
            json!({ "manager": manager, "operation": "Update", "fieldsType": "FieldsV1",
                "fieldsV1": { "f:metadata": { "f:finalizers": set } } })
        };
        let mut metadata = json!({
            "deletionTimestamp": "2026-01-01T12:00:00Z",
            "finalizers": ["a.example.com/x", "b.example.com/y", "foregroundDeletion"],
            "managedFields": [owns("kubectl-edit", &["a.example.com/x"]),
                owns("operator", &["a.example.com/x", "b.example.com/y"])],
        });
        let expected = "The pod's EvictionRequest is being deleted and kept by its finalizers: a.example.com/x (set by \
                        kubectl-edit, operator), b.example.com/y (set by operator), foregroundDeletion";
        assert_eq!(why_held(&request(&metadata)).as_deref(), Some(expected));
        metadata["deletionTimestamp"] = Value::Null;
        assert_eq!(why_held(&request(&metadata)), None, "it is not being deleted");
    }
}
