//! Files for clients and readers, generated from the schemas of kinds: the .proto file, the reference of all fields, and
//! the list of protobuf tags, which keeps a tag from being changed or used again.
//!
//! A project commits these files, with a test that compares them with what is generated.

mod proto;
mod reference;
mod tags;

pub use proto::proto_file;
pub use reference::field_reference;
pub use tags::Tags;

use crate::kind::Kind;
use crate::schema::{ObjectShape, Schema, Shape};

/// The structs of these kinds that belong to the kinds' own packages, each once, in the order in which they are met.
fn own_structs<'k>(kinds: &[&'k dyn Kind]) -> Vec<&'k ObjectShape> {
    let mut found = Vec::new();
    for kind in kinds {
        collect(kind.schema(), package(kind.schema()), &mut found);
    }
    found
}

fn collect<'s>(schema: &'s Schema, own: &str, found: &mut Vec<&'s ObjectShape>) {
    match &schema.shape {
        Shape::Object(shape) if split(shape.definition).0 == own => {
            if found.iter().all(|known| known.definition != shape.definition) {
                found.push(shape);
            }
            shape.fields.iter().for_each(|field| collect(&field.schema, own, found));
        }
        Shape::List(items, _) | Shape::Map(items) => collect(items, own, found),
        _ => {}
    }
}

/// The package of a kind's definition.
fn package(schema: &Schema) -> &'static str {
    match &schema.shape {
        Shape::Object(shape) => split(shape.definition).0,
        _ => "",
    }
}

/// The package and the name of a definition.
fn split(definition: &'static str) -> (&'static str, &'static str) {
    definition.rsplit_once('.').unwrap_or(("", definition))
}
