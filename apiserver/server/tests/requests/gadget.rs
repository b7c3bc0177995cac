//! The kind under test: `spec{size, color, parts[{name, count}], writers[{name, count}]}`, `status{phase}`.

use drydock_machinery::Object;
use drydock_machinery::field::{Error, ErrorList, Path};
use drydock_machinery::kind::{BytesQuota, Column, Kind, Names, Now, Quota};
use drydock_machinery::schema::common::meta_schema;
use drydock_machinery::schema::{Field, ListType, ObjectShape, Schema, Shape};
use serde_json::{Value, json};

pub struct Gadget {
    names: Names,
    schema: Schema,
    unconditional: bool,
    /// Whether it has a quota, and a size: see [`QUOTA`] and [`MAX_GADGET_BYTES`].
    bounded: bool,
}

/// Gadgets that are not painted.
pub const QUOTA: Quota = Quota {
    name: "plain-gadgets",
    hard: 20,
    reads: &["status.phase"],
    counts: |gadget| gadget.0.get("status").is_none_or(|status| status["phase"] != "painted"),
    remedy: "paint some",
    bytes: BytesQuota { name: "gadget-bytes", hard: 300_000, counts_status: true, remedy: "remove some" },
};
/// Most bytes of the managed fields of the status.
pub const MAX_STATUS_MANAGER_BYTES: usize = 1024;
/// Most bytes without the status.
pub const MAX_GADGET_BYTES: usize = 8192;

pub const NAMESPACED: Names = Names {
    group: "test.io",
    version: "v1",
    kind: "Gadget",
    plural: "gadgets",
    singular: "gadget",
    short_names: &["gd"],
    categories: &[],
    namespaced: true,
};

const COLUMNS: &[Column] = &[
    Column { name: "Name", type_: "string", format: "name", description: "Name.", priority: 0 },
    Column { name: "Size", type_: "integer", format: "", description: "Size.", priority: 0 },
];

impl Gadget {
    pub fn namespaced() -> Self {
        Self { names: NAMESPACED, schema: schema(), unconditional: true, bounded: false }
    }

    pub fn bounded() -> Self {
        Self { bounded: true, ..Self::namespaced() }
    }

    /// Cluster-scoped, and wants a resourceVersion in updates.
    pub fn cluster() -> Self {
        let names =
            Names { kind: "Widget", plural: "widgets", singular: "widget", namespaced: false, ..NAMESPACED };
        Self { names, schema: schema(), unconditional: false, bounded: false }
    }
}

fn field(name: &'static str, number: u32, schema: Schema) -> Field {
    Field { name, number, required: false, always: false, pointer: None, schema }
}

fn of(name: &'static str, number: u32, shape: Shape) -> Field {
    field(name, number, Schema::new("Text.", shape))
}

fn object(definition: &'static str, fields: Vec<Field>) -> Schema {
    Schema::new("A struct.", Shape::Object(ObjectShape { definition, fields, ..ObjectShape::default() }))
}

fn schema() -> Schema {
    let part = object("io.test.Part", vec![of("name", 1, Shape::String), of("count", 2, Shape::Int32)]);
    let parts = Schema::new("Parts.", Shape::List(Box::new(part), ListType::Map(&["name"])));
    let writers = parts.clone().described("Writers.");
    let spec = object(
        "io.test.GadgetSpec",
        vec![
            of("size", 1, Shape::Int32),
            of("color", 2, Shape::String),
            field("parts", 3, parts),
            field("writers", 4, writers),
        ],
    );
    let status =
        object("io.test.GadgetStatus", vec![of("phase", 1, Shape::String), of("note", 2, Shape::String)]);
    object(
        "io.test.Gadget",
        vec![
            of("kind", 0, Shape::String),
            of("apiVersion", 0, Shape::String),
            field("metadata", 1, meta_schema()),
            Field { always: true, ..field("spec", 2, spec) },
            Field { always: true, ..field("status", 3, status) },
        ],
    )
}

fn spec(object: &Object) -> &Value {
    object.0.get("spec").unwrap_or(&Value::Null)
}

fn keep(field: &str, new: &mut Object, old: &Object) {
    match old.0.get(field) {
        Some(value) => new.0.insert(field.to_owned(), value.clone()),
        None => new.0.remove(field),
    };
}

impl Kind for Gadget {
    fn names(&self) -> &Names {
        &self.names
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn set_defaults(&self, object: &mut Object) {
        let spec = object.0.entry("spec").or_insert_with(|| json!({}));
        if let Value::Object(spec) = spec {
            spec.entry("color").or_insert_with(|| json!("red"));
        }
    }
    fn selectable_fields(&self) -> &[&'static str] {
        &["spec.color"]
    }
    /// A signed gadget has its writer, once when it is made and twice when it is changed.
    fn record_user(&self, new: &mut Object, old: Option<&Object>, username: &str) {
        if spec(new)["color"] == "signed" {
            let times = 1 + i32::from(old.is_some());
            new.0["spec"]["writers"] = json!([{"name": username, "count": times}]);
        }
    }
    fn recorded_fields(&self) -> &[&'static str] {
        &["spec.writers"]
    }
    fn prepare_for_create(&self, object: &mut Object) {
        object.0.remove("status");
    }
    fn validate_create(&self, object: &Object, _: Now) -> ErrorList {
        let size = spec(object)["size"].as_i64().unwrap_or(1);
        let path = Path::new("spec").child("size");
        if size < 0 { vec![Error::invalid(path, size, "must not be negative")] } else { ErrorList::new() }
    }
    fn prepare_for_update(&self, new: &mut Object, old: &Object) {
        keep("status", new, old);
    }
    /// A signed gadget keeps it.
    fn note_creator(&self, object: &mut Object, creator: &str) {
        if spec(object)["color"] == "signed" {
            object.0.insert("status".to_owned(), json!({"note": creator}));
        }
    }
    fn validate_update(&self, new: &Object, _: &Object, now: Now) -> ErrorList {
        self.validate_create(new, now)
    }
    fn prepare_for_status_update(&self, new: &mut Object, old: &Object) {
        keep("spec", new, old);
    }
    fn validate_status_update(&self, _: &Object, _: &Object, _: Now) -> ErrorList {
        ErrorList::new()
    }
    fn max_bytes_without_status(&self) -> Option<usize> {
        self.bounded.then_some(MAX_GADGET_BYTES)
    }
    fn quota(&self) -> Option<Quota> {
        self.bounded.then_some(QUOTA)
    }
    /// A phase alone is needed, and a note is not.
    fn is_needed_status(&self, new: &Object, old: &Object) -> bool {
        let note = |object: &Object| object.0.get("status").and_then(|status| status.get("note").cloned());
        note(new) == note(old)
    }
    /// Vermilion is needed.
    fn is_needed_update(&self, new: &Object, old: &Object) -> bool {
        spec(new)["color"] == "vermilion" && spec(old)["color"] != "vermilion"
    }
    fn max_bytes_of_status_managers(&self) -> Option<usize> {
        self.bounded.then_some(MAX_STATUS_MANAGER_BYTES)
    }
    fn allows_unconditional_update(&self) -> bool {
        self.unconditional
    }
    fn warnings(&self, new: &Object, _: Option<&Object>) -> Vec<String> {
        let odd = spec(new)["color"] == "beige";
        odd.then(|| "beige is out of fashion".to_owned()).into_iter().collect()
    }
    fn columns(&self) -> &[Column] {
        COLUMNS
    }
    fn cells(&self, object: &Object, _: Now) -> Vec<Value> {
        vec![object.name().into(), spec(object)["size"].clone()]
    }
}
