//! A kind with every shape that managed fields distinguish.

use drydock_machinery::schema::{Field, ListType, ObjectShape, Schema, Shape};

/// `Sample` of `example.io/v1`.
pub fn sample() -> Schema {
    let spec = vec![
        struct_field("target", target(false)),
        field("pointer", target(false)),
        field("fixed", target(true)),
        field("items", map_list(item())),
        field("atoms", map_list(atom())),
        field("set", Shape::List(Box::new(schema(Shape::String)), ListType::Set)),
        field("list", Shape::List(Box::new(schema(Shape::String)), ListType::Atomic)),
        field("map", strings()),
        field("count", Shape::Int32),
        field("stage", Shape::String),
    ];
    let status = vec![field("observed", Shape::Int64), field("items", map_list(item()))];
    schema(object(
        vec![
            field("apiVersion", Shape::String),
            field("kind", Shape::String),
            struct_field("metadata", meta()),
            struct_field("spec", object(spec, false)),
            struct_field("status", object(status, false)),
        ],
        false,
    ))
}

fn meta() -> Shape {
    let texts = ["name", "namespace", "uid", "resourceVersion"].map(|name| field(name, Shape::String));
    let mut fields = texts.to_vec();
    fields.extend([
        field("generation", Shape::Int64),
        field("creationTimestamp", Shape::Time),
        field("labels", strings()),
        field("annotations", strings()),
        field("finalizers", Shape::List(Box::new(schema(Shape::String)), ListType::Set)),
        field("managedFields", Shape::List(Box::new(schema(Shape::Raw)), ListType::Atomic)),
    ]);
    object(fields, false)
}

fn item() -> Shape {
    let tags = Shape::List(Box::new(schema(Shape::String)), ListType::Set);
    let fields =
        vec![always("name"), field("note", Shape::String), field("count", Shape::Int32), field("tags", tags)];
    object(fields, false)
}

fn atom() -> Shape {
    object(vec![always("name"), field("note", Shape::String)], true)
}

fn target(atomic: bool) -> Shape {
    object(vec![field("a", Shape::String), field("b", Shape::String)], atomic)
}

fn map_list(items: Shape) -> Shape {
    Shape::List(Box::new(schema(items)), ListType::Map(&["name"]))
}

fn strings() -> Shape {
    Shape::Map(Box::new(schema(Shape::String)))
}

fn object(fields: Vec<Field>, atomic: bool) -> Shape {
    Shape::Object(ObjectShape { fields, atomic, ..ObjectShape::default() })
}

fn schema(shape: Shape) -> Schema {
    Schema::new("", shape)
}

fn field(name: &'static str, shape: Shape) -> Field {
    Field { name, number: 1, required: false, always: false, pointer: None, schema: schema(shape) }
}

fn struct_field(name: &'static str, shape: Shape) -> Field {
    Field { always: true, ..field(name, shape) }
}

fn always(name: &'static str) -> Field {
    Field { always: true, ..field(name, Shape::String) }
}
