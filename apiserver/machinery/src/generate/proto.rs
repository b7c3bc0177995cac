//! The .proto file of kinds, as Kubernetes publishes one for each package (`generated.proto`).

use std::collections::BTreeSet;
use std::fmt::Write;

use super::tags::{Tags, own_structs, package, split};
use crate::kind::Kind;
use crate::schema::{Field, ObjectShape, Schema, Shape};

const META: &str = ".k8s.io.apimachinery.pkg.apis.meta.v1";
const INT_OR_STRING: &str = ".k8s.io.apimachinery.pkg.util.intstr.IntOrString";
/// Columns of a comment.
const WIDTH: usize = 118;

/// Returns the .proto file of kinds of one package, with a message for each of their structs and for the list of each
/// kind. `header` is the comment at its beginning. Tags that are no longer used are reserved.
pub fn proto_file(kinds: &[&dyn Kind], header: &str, tags: &Tags) -> String {
    let own = kinds.first().map_or("", |kind| package(kind.schema()));
    let structs = own_structs(kinds);
    let mut messages: Vec<String> = structs.iter().map(|shape| message(shape, own, tags)).collect();
    messages.extend(kinds.iter().map(|kind| list_message(kind.names().kind)));
    let body = messages.join("\n");
    let imports: String = imports(&body).iter().fold(String::new(), |mut all, import| {
        // Writing to a string does not fail.
        let _ = writeln!(all, "import \"{import}\";");
        all
    });
    format!(
        "{}\nsyntax = \"proto2\";\n\npackage {};\n\n{imports}\n{body}",
        comment(header, ""),
        proto_package(own)
    )
}

fn message(shape: &ObjectShape, own: &str, tags: &Tags) -> String {
    let name = split(shape.definition).1;
    let fields = shape.fields.iter().filter(|field| field.number > 0);
    let mut parts: Vec<String> = fields.map(|field| field_lines(field, own)).collect();
    parts.extend(tags.reserved(name).map(|number| format!("  reserved {number};\n")));
    format!("{}message {name} {{\n{}}}\n", comment(shape.description, ""), parts.join("\n"))
}

fn field_lines(field: &Field, own: &str) -> String {
    let text = comment(field.schema.description, "  ");
    format!("{text}  {} {} = {};\n", declared(&field.schema, own), field.name, field.number)
}

fn list_message(kind: &str) -> String {
    format!(
        "// {kind}List is a list of {kind} objects.\nmessage {kind}List {{\n  // Standard list metadata.\n  \
         optional {META}.ListMeta metadata = 1;\n\n  // Items is the list of objects.\n  repeated {kind} items = \
         2;\n}}\n"
    )
}

fn declared(schema: &Schema, own: &str) -> String {
    match &schema.shape {
        Shape::List(items, _) => format!("repeated {}", type_name(items, own)),
        Shape::Map(values) => format!("map<string, {}>", type_name(values, own)),
        _ => format!("optional {}", type_name(schema, own)),
    }
}

fn type_name(schema: &Schema, own: &str) -> String {
    match &schema.shape {
        Shape::Boolean => "bool".to_owned(),
        Shape::Int32 => "int32".to_owned(),
        Shape::Int64 => "int64".to_owned(),
        Shape::String => "string".to_owned(),
        Shape::Bytes => "bytes".to_owned(),
        Shape::IntOrString => INT_OR_STRING.to_owned(),
        Shape::Time => format!("{META}.Time"),
        Shape::MicroTime => format!("{META}.MicroTime"),
        Shape::Raw => format!("{META}.FieldsV1"),
        Shape::Object(shape) => match split(shape.definition) {
            (package, name) if package == own => name.to_owned(),
            (package, name) => format!(".{}.{name}", proto_package(package)),
        },
        // Neither protobuf nor the API conventions have maps of maps or lists of lists.
        Shape::Map(items) | Shape::List(items, _) => type_name(items, own),
    }
}

/// OpenAPI definitions of Kubernetes begin with `io.k8s`, its protobuf packages with `k8s.io`.
fn proto_package(package: &str) -> String {
    package.strip_prefix("io.k8s.").map_or_else(|| package.to_owned(), |rest| format!("k8s.io.{rest}"))
}

/// The files of Kubernetes that declare the types which `body` refers to.
fn imports(body: &str) -> BTreeSet<String> {
    let types = body.split_whitespace().filter_map(|word| word.strip_prefix(".k8s.io."));
    types
        .filter_map(|name| name.rsplit_once('.'))
        .map(|(package, _)| format!("k8s.io/{}/generated.proto", package.replace('.', "/")))
        .collect()
}

/// A text as comment lines, of at most [`WIDTH`] columns; empty for an empty text.
fn comment(text: &str, indent: &str) -> String {
    let width = WIDTH - indent.len();
    let lines = text.lines().flat_map(|line| wrapped(line, width));
    lines.fold(String::new(), |all, line| {
        let line = format!("{indent}// {line}");
        all + line.trim_end() + "\n"
    })
}

/// The lines of a paragraph; those of an item of a list are indented after the first.
pub(super) fn wrapped(paragraph: &str, width: usize) -> Vec<String> {
    let indent = if paragraph.starts_with("- ") { "  " } else { "" };
    let mut lines = vec![String::new()];
    for word in paragraph.split(' ') {
        let line = lines.last_mut().filter(|line| line.is_empty() || line.len() + 1 + word.len() <= width);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(format!("{indent}{word}")),
        }
    }
    lines
}
