//! The reference of all fields of kinds, in Markdown.

use super::tags::{own_structs, package, split};
use crate::kind::Kind;
use crate::schema::{Field, ListType, ObjectShape, PatchStrategy, Schema, Shape};

/// Returns a section for each struct of the kinds, with a paragraph for each field: its type, its protobuf tag, how a
/// server-side apply and a strategic merge patch treat it, and its text.
pub fn field_reference(kinds: &[&dyn Kind], title: &str) -> String {
    let own = kinds.first().map_or("", |kind| package(kind.schema()));
    let sections = own_structs(kinds).into_iter().map(|shape| section(shape, own));
    std::iter::once(format!("# {title}\n")).chain(sections).collect::<Vec<_>>().join("\n")
}

fn section(shape: &ObjectShape, own: &str) -> String {
    let atomic =
        if shape.atomic { "\nA server-side apply owns it as a whole (`structType=atomic`).\n" } else { "" };
    let fields: String = shape.fields.iter().map(|field| paragraph(field, own)).collect();
    format!("## {}\n{}\n{atomic}\n{fields}", split(shape.definition).1, shape.description)
}

fn paragraph(field: &Field, own: &str) -> String {
    let facts = facts(field, own).join(", ");
    let text = field.schema.description.replace("\n\n", "\n\n  ").replace("\n-", "\n  -");
    format!("- **`{}`** ({facts}): {text}\n", field.name)
}

fn facts(field: &Field, own: &str) -> Vec<String> {
    let schema = &field.schema;
    let mut facts = vec![type_name(schema, own)];
    if field.number > 0 {
        facts.push(format!("tag {}", field.number));
    }
    if field.required {
        facts.push("required".to_owned());
    }
    if let Shape::List(_, list_type) = &schema.shape {
        facts.push(match list_type {
            ListType::Atomic => "atomic".to_owned(),
            ListType::Set => "set".to_owned(),
            ListType::Map(keys) => format!("map by `{}`", keys.join("`, `")),
        });
    }
    match schema.patch {
        PatchStrategy::Unset => {}
        PatchStrategy::Replace => facts.push("strategic merge: replaced".to_owned()),
        PatchStrategy::Merge => facts.push("strategic merge: items are added".to_owned()),
        PatchStrategy::MergeBy(key) => facts.push(format!("strategic merge: by `{key}`")),
    }
    facts.extend(schema.max_items.map(|items| format!("at most {items}")));
    if !schema.enumeration.is_empty() {
        facts.push(format!("one of `{}`", schema.enumeration.join("`, `")));
    }
    facts.extend(schema.default.map(|default| format!("default `{default}`")));
    facts
}

fn type_name(schema: &Schema, own: &str) -> String {
    match &schema.shape {
        Shape::Boolean => "boolean".to_owned(),
        Shape::Int32 => "int32".to_owned(),
        Shape::Int64 => "int64".to_owned(),
        Shape::String => "string".to_owned(),
        Shape::Bytes => "bytes".to_owned(),
        Shape::IntOrString => "int or string".to_owned(),
        Shape::Time => "Time".to_owned(),
        Shape::MicroTime => "MicroTime".to_owned(),
        Shape::Raw => "object".to_owned(),
        Shape::Object(shape) => match split(shape.definition) {
            (package, name) if package == own => format!("[{name}](#{})", name.to_lowercase()),
            (_, name) => name.to_owned(),
        },
        Shape::Map(values) => format!("map of {}", type_name(values, own)),
        Shape::List(items, _) => format!("list of {}", type_name(items, own)),
    }
}
