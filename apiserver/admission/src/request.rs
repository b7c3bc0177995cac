//! The AdmissionRequest of admission.k8s.io/v1 for a request.

use drydock_machinery::kind::Names;
use drydock_server::admission::AdmissionAttributes;
use drydock_serving::request::user::User;
use serde_json::{Map, Value, json};

/// Returns all fields except the objects (k8s.io/apiserver pkg/admission/plugin/cel/condition.go,
/// CreateAdmissionRequest; plugin/webhook/request). Omits empty fields like Go's `omitempty`.
pub fn admission_request(request: &AdmissionAttributes<'_>, uid: &str) -> Map<String, Value> {
    let mut all = Map::new();
    let mut put = |field: &str, value: Value| all.insert(field.to_owned(), value);
    let (kind, resource) = (kind(request.names), resource(request.names));
    put("uid", uid.into());
    put("kind", kind.clone());
    put("resource", resource.clone());
    put("requestKind", kind);
    put("requestResource", resource);
    put("operation", request.operation.as_str().into());
    put("userInfo", user_info(request.user));
    put("dryRun", request.dry_run.into());
    put("options", request.options.to_json(request.operation));
    for (field, text) in [
        ("subResource", request.subresource),
        ("requestSubResource", request.subresource),
        ("name", request.name),
        ("namespace", request.namespace),
    ] {
        if !text.is_empty() {
            put(field, text.into());
        }
    }
    all
}

fn kind(names: &Names) -> Value {
    json!({"group": names.group, "version": names.version, "kind": names.kind})
}

fn resource(names: &Names) -> Value {
    json!({"group": names.group, "version": names.version, "resource": names.plural})
}

fn user_info(user: &User) -> Value {
    let mut all = Map::new();
    let mut put = |field: &str, value: Value, empty: bool| {
        if !empty {
            all.insert(field.to_owned(), value);
        }
    };
    put("username", user.name.as_str().into(), user.name.is_empty());
    put("uid", user.uid.as_str().into(), user.uid.is_empty());
    put("groups", user.groups.clone().into(), user.groups.is_empty());
    put("extra", json!(user.extra), user.extra.is_empty());
    Value::Object(all)
}
