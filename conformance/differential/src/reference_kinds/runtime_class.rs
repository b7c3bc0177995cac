//! RuntimeClass of node.k8s.io/v1 (k8s.io/kubernetes pkg/registry/node/runtimeclass), without its overhead
//! and its node selector.

use drydock_machinery::Object;
use drydock_machinery::field::{Error, ErrorList, Path};
use drydock_machinery::kind::{Column, Kind, NAME_AND_AGE, Names, Now};
use drydock_machinery::meta::{immutable, validate_label_name};
use drydock_machinery::names::dns1123_label;
use drydock_machinery::schema::common::{list, object, optional, required, text};
use drydock_machinery::schema::{ListType, Schema, Shape};
use drydock_machinery::table;
use serde_json::Value;

use super::{names, scalar, top_level};

const NAMES: Names = Names { namespaced: false, ..names("RuntimeClass", "runtimeclasses", "runtimeclass") };

/// The kind.
pub struct RuntimeClass(Schema);

impl RuntimeClass {
    /// Creates the kind with its schema.
    pub fn new() -> Self {
        let toleration = vec![
            text("key", 1, ""),
            text("operator", 2, ""),
            text("value", 3, ""),
            text("effect", 4, ""),
            scalar("tolerationSeconds", 5, Shape::Int64),
        ];
        let toleration = object("", "test.drydock.reference.v1.Toleration", toleration);
        let scheduling = vec![optional("tolerations", 2, list("Tolerations.", toleration, ListType::Atomic))];
        let fields = vec![
            required("handler", 2, Schema::new("Who runs the containers.", Shape::String)),
            optional("scheduling", 4, object("", "test.drydock.reference.v1.Scheduling", scheduling)),
        ];
        Self(top_level("test.drydock.reference.v1.RuntimeClass", fields))
    }
}

impl Kind for RuntimeClass {
    fn names(&self) -> &Names {
        &NAMES
    }

    fn schema(&self) -> &Schema {
        &self.0
    }

    fn validate_create(&self, object: &Object, _now: Now) -> ErrorList {
        let mut errors = validate_handler(handler(object));
        let scheduling = object.0.get("scheduling").and_then(|scheduling| scheduling.get("tolerations"));
        let path = Path::new("scheduling").child("tolerations");
        for (at, toleration) in scheduling.and_then(Value::as_array).into_iter().flatten().enumerate() {
            errors.extend(validate_toleration(toleration, &path.index(at)));
        }
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, now: Now) -> ErrorList {
        let mut errors = self.validate_create(new, now);
        if handler(new) != handler(old) {
            errors.push(immutable(Path::new("handler"), handler(new)));
        }
        errors
    }

    fn counts_generation(&self) -> bool {
        false
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn cells(&self, object: &Object, now: Now) -> Vec<Value> {
        vec![object.name().into(), handler(object).into(), table::age(object, now).into()]
    }
}

fn handler(object: &Object) -> &str {
    object.0.get("handler").and_then(Value::as_str).unwrap_or_default()
}

fn validate_handler(handler: &str) -> ErrorList {
    let path = Path::new("handler");
    if handler.is_empty() {
        return vec![Error::required(path, "")];
    }
    dns1123_label(handler).into_iter().map(|wrong| Error::invalid(path.clone(), handler, wrong)).collect()
}

/// k8s.io/kubernetes pkg/apis/core/validation, ValidateTolerations, as far as keys and seconds go.
fn validate_toleration(toleration: &Value, path: &Path) -> ErrorList {
    let text = |field: &str| toleration[field].as_str().unwrap_or_default();
    let mut errors = ErrorList::new();
    if text("key").is_empty() {
        if text("operator") != "Exists" {
            let path = path.child("operator");
            errors.push(Error::invalid(
                path,
                text("operator"),
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            ));
        }
    } else {
        errors.extend(validate_label_name(text("key"), &path.child("key")));
    }
    if !toleration["tolerationSeconds"].is_null() && text("effect") != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(Error::invalid(path.child("effect"), text("effect"), detail));
    }
    errors
}

const COLUMNS: [Column; 3] = {
    let [name, age] = NAME_AND_AGE;
    [name, Column { name: "Handler", type_: "string", format: "", description: "", priority: 0 }, age]
};
