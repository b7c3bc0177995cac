//! Tests that the `.proto` files in `proto/` match the schemas: same messages, fields, numbers and types.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use drydock_api::eviction_request::EvictionRequestKind;
use drydock_api::node_maintenance::NodeMaintenanceKind;
use drydock_machinery::kind::Kind;
use drydock_machinery::schema::{Schema, Shape};

const PACKAGE: &str = "k8s.io.api.coordination.v1alpha1";
const EVICTION_REQUEST: &str =
    include_str!("../../../proto/k8s.io/api/coordination/v1alpha1/eviction_request.proto");
const NODE_MAINTENANCE: &str =
    include_str!("../../../proto/k8s.io/api/coordination/v1alpha1/node_maintenance.proto");

/// For each message, the fields by number, for example `optional string name`.
type Messages = BTreeMap<String, BTreeMap<u32, String>>;

#[test]
fn eviction_requests_are_encoded_as_their_proto_file_says() {
    let kind = EvictionRequestKind::new(std::time::Duration::from_secs(1200));
    assert_eq!(of_schema(kind.schema(), "EvictionRequest"), of_text(EVICTION_REQUEST));
}

#[test]
fn node_maintenances_are_encoded_as_their_proto_file_says() {
    assert_eq!(of_schema(NodeMaintenanceKind::new().schema(), "NodeMaintenance"), of_text(NODE_MAINTENANCE));
}

fn of_schema(schema: &Schema, kind: &str) -> Messages {
    let mut messages = Messages::new();
    collect(schema, &mut messages);
    let list = [
        (1, "optional .k8s.io.apimachinery.pkg.apis.meta.v1.ListMeta metadata".to_owned()),
        (2, format!("repeated {kind} items")),
    ];
    messages.insert(format!("{kind}List"), BTreeMap::from(list));
    messages
}

/// Messages of this package. Those of other packages have their own files.
fn collect(schema: &Schema, messages: &mut Messages) {
    match &schema.shape {
        Shape::Object(object) => {
            let Some(name) = own(object.definition) else { return };
            let fields = object.fields.iter().filter(|f| f.number > 0);
            let fields = fields.map(|f| (f.number, format!("{} {}", declared(&f.schema), f.name))).collect();
            messages.insert(name.to_owned(), fields);
            object.fields.iter().for_each(|f| collect(&f.schema, messages));
        }
        Shape::List(items, _) | Shape::Map(items) => collect(items, messages),
        _ => {}
    }
}

fn own(definition: &str) -> Option<&str> {
    definition.strip_prefix("io.k8s.api.coordination.v1alpha1.")
}

fn declared(schema: &Schema) -> String {
    match &schema.shape {
        Shape::List(items, _) => format!("repeated {}", type_of(items)),
        Shape::Map(values) => format!("map<string, {}>", type_of(values)),
        _ => format!("optional {}", type_of(schema)),
    }
}

fn type_of(schema: &Schema) -> String {
    let meta = |name: &str| format!(".k8s.io.apimachinery.pkg.apis.meta.v1.{name}");
    match &schema.shape {
        Shape::Boolean => "bool".to_owned(),
        Shape::Int32 => "int32".to_owned(),
        Shape::Int64 => "int64".to_owned(),
        Shape::String => "string".to_owned(),
        Shape::Time => meta("Time"),
        Shape::MicroTime => meta("MicroTime"),
        Shape::Object(object) => match own(object.definition) {
            Some(name) => name.to_owned(),
            None => object.definition.replacen("io.k8s.", ".k8s.io.", 1),
        },
        other => panic!("{other:?} has no type of its own in a .proto file"),
    }
}

/// Parses the part of the language that the files use: one declaration per line, comments on their own lines.
fn of_text(text: &str) -> Messages {
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("//"));
    assert!(lines.clone().any(|line| line == format!("package {PACKAGE};")));
    let mut messages = Messages::new();
    let mut current = String::new();
    for line in lines {
        if let Some(name) = line.strip_prefix("message ").and_then(|l| l.strip_suffix(" {")) {
            current = name.to_owned();
            assert!(messages.insert(current.clone(), BTreeMap::new()).is_none(), "{name} stands twice");
        } else if let Some((field, number)) = line.strip_suffix(';').and_then(|l| l.rsplit_once(" = "))
            && let Ok(number) = number.parse()
        {
            let before = messages.get_mut(&current).unwrap().insert(number, field.to_owned());
            assert!(before.is_none(), "{current} has {number} twice");
        }
    }
    messages
}
