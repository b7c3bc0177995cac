//! ConfigMap of the core group (k8s.io/kubernetes pkg/registry/core/configmap).

use drydock_machinery::Object;
use drydock_machinery::field::{Error, ErrorList, Path};
use drydock_machinery::kind::{Column, Kind, NAME_AND_AGE, Names, Now};
use drydock_machinery::schema::common::{optional, strings_map};
use drydock_machinery::schema::{Schema, Shape};
use drydock_machinery::table;
use serde_json::{Map, Value};

use super::{names, scalar, top_level};

const NAMES: Names = names("ConfigMap", "configmaps", "configmap");

/// The kind.
pub struct ConfigMap(Schema);

impl ConfigMap {
    /// Creates the kind with its schema.
    pub fn new() -> Self {
        let bytes = Schema::new("", Shape::Map(Box::new(Schema::new("", Shape::Bytes))));
        let fields = vec![
            scalar("immutable", 4, Shape::Boolean),
            optional("data", 2, strings_map("Texts.")),
            optional("binaryData", 3, bytes),
        ];
        Self(top_level("test.drydock.reference.v1.ConfigMap", fields))
    }
}

impl Kind for ConfigMap {
    fn names(&self) -> &Names {
        &NAMES
    }

    fn schema(&self) -> &Schema {
        &self.0
    }

    fn validate_create(&self, object: &Object, _now: Now) -> ErrorList {
        let of = |field: &str| object.0.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
        let (data, binary) = (of("data"), of("binaryData"));
        let mut errors = validate_keys(&data, &Path::new("data"));
        let path = Path::new("data");
        let twice = data.keys().filter(|key| binary.contains_key(*key));
        errors.extend(twice.map(|key| {
            Error::invalid(path.key(key), key.as_str(), "duplicate of key present in binaryData")
        }));
        errors.extend(validate_keys(&binary, &Path::new("binaryData")));
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, now: Now) -> ErrorList {
        let mut errors = ErrorList::new();
        if old.0.get("immutable") == Some(&Value::Bool(true)) {
            let changed =
                ["immutable", "data", "binaryData"].into_iter().filter(|f| new.0.get(*f) != old.0.get(*f));
            let detail = "field is immutable when `immutable` is set";
            errors.extend(changed.map(|field| Error::forbidden(Path::new(field), detail)));
        }
        errors.extend(self.validate_create(new, now));
        errors
    }

    fn counts_generation(&self) -> bool {
        false
    }

    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn cells(&self, object: &Object, now: Now) -> Vec<Value> {
        let count = |field: &str| object.0.get(field).and_then(Value::as_object).map_or(0, Map::len);
        let all = count("data") + count("binaryData");
        vec![object.name().into(), all.into(), table::age(object, now).into()]
    }
}

/// k8s.io/apimachinery pkg/util/validation, IsConfigMapKey.
fn validate_keys(map: &Map<String, Value>, path: &Path) -> ErrorList {
    let is_key =
        |key: &str| key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) && !key.is_empty();
    let wrong = map.keys().filter(|key| !is_key(key));
    wrong.map(|key| Error::invalid(path.key(key), key.as_str(), KEY)).collect()
}

const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

const COLUMNS: [Column; 3] = {
    let [name, age] = NAME_AND_AGE;
    let data = Column {
        name: "Data",
        type_: "string",
        format: "",
        description: "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the BinaryData field. The keys stored in Data must not overlap with the keys in the BinaryData field, this is enforced during validation process.",
        priority: 0,
    };
    [name, data, age]
};
