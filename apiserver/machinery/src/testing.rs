//! A kind for this crate's own tests.

use serde_json::Value;

use crate::field::ErrorList;
use crate::kind::{Column, Kind, Names, Now};
use crate::object::Object;
use crate::schema::common::{list, meta_schema, object, optional, required_text, text};
use crate::schema::{ListType, Schema, Shape};
use crate::table::age;

pub(crate) const NAMES: Names = Names {
    group: "g.io",
    version: "v1",
    kind: "Thing",
    plural: "things",
    singular: "thing",
    short_names: &["th"],
    categories: &["all"],
    namespaced: true,
};

/// A kind without rules, namespaced or not.
pub(crate) struct Thing {
    names: Names,
    schema: Schema,
}

impl Thing {
    pub(crate) fn namespaced() -> Self {
        Self { names: NAMES, schema: schema() }
    }
    pub(crate) fn cluster() -> Self {
        let names = Names {
            namespaced: false,
            kind: "Other",
            plural: "others",
            singular: "other",
            short_names: &[],
            ..NAMES
        };
        Self { names, schema: schema() }
    }
    /// The same kind in another version.
    pub(crate) fn in_version(&self, version: &'static str) -> Self {
        Self { names: Names { version, ..self.names.clone() }, schema: schema() }
    }
}

fn schema() -> Schema {
    let item = object(
        "One.",
        "io.k8s.api.g.v1.Item",
        vec![required_text("name", 1, "Key."), text("note", 2, "Note.")],
    );
    let spec = vec![
        optional("count", 1, Schema::new("How many.", Shape::Int32)),
        optional("items", 2, list("Which.", item, ListType::Map(&["name"]))),
    ];
    let status = vec![optional("since", 1, Schema::new("Since when.", Shape::MicroTime))];
    let fields = vec![
        text("apiVersion", 0, "Version."),
        text("kind", 0, "Kind."),
        optional("metadata", 1, meta_schema()),
        optional("spec", 2, object("What is wanted.", "io.k8s.api.g.v1.ThingSpec", spec)),
        optional("status", 3, object("What is.", "io.k8s.api.g.v1.ThingStatus", status)),
    ];
    object("A thing.", "io.k8s.api.g.v1.Thing", fields)
}

const COLUMNS: [Column; 2] = [
    Column { name: "Name", type_: "string", format: "name", description: "Its name.", priority: 0 },
    Column { name: "Age", type_: "string", format: "", description: "Its age.", priority: 0 },
];

impl Kind for Thing {
    fn names(&self) -> &Names {
        &self.names
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn set_defaults(&self, _: &mut Object) {}
    fn prepare_for_create(&self, _: &mut Object) {}
    fn validate_create(&self, _: &Object, _: Now) -> ErrorList {
        ErrorList::new()
    }
    fn prepare_for_update(&self, _: &mut Object, _: &Object) {}
    fn validate_update(&self, _: &Object, _: &Object, _: Now) -> ErrorList {
        ErrorList::new()
    }
    fn prepare_for_status_update(&self, _: &mut Object, _: &Object) {}
    fn validate_status_update(&self, _: &Object, _: &Object, _: Now) -> ErrorList {
        ErrorList::new()
    }
    fn columns(&self) -> &[Column] {
        &COLUMNS
    }
    fn cells(&self, object: &Object, now: Now) -> Vec<Value> {
        vec![object.name().into(), age(object, now).into()]
    }
}
