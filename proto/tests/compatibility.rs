//! Within a version the API only grows: what `accepted.txt` lists is still there, with the same number, name and type.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    ServiceDescriptorProto,
};

const ACCEPTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/accepted.txt");
const ACCEPT: &str = "UPDATE=1 cargo test -p drydock-proto";

#[test]
fn nothing_that_clients_rely_on_is_removed_or_changed() {
    let missing = missing(&accepted(), &current());
    assert!(
        missing.is_empty(),
        "removed or changed, which breaks clients; add something new instead:\n{missing:#?}"
    );
}

#[test]
fn what_is_new_is_accepted_once() {
    let (accepted, current) = (accepted(), current());
    let new: Vec<&String> = current.difference(&accepted).collect();
    if std::env::var_os("UPDATE").is_some() {
        let missing = missing(&accepted, &current);
        assert!(missing.is_empty(), "only additions can be accepted; these are gone:\n{missing:#?}");
        let lines: Vec<&str> = current.iter().map(String::as_str).collect();
        std::fs::write(ACCEPTED, lines.join("\n") + "\n").unwrap();
        return;
    }
    assert!(new.is_empty(), "not in accepted.txt; accept it with `{ACCEPT}`:\n{new:#?}");
}

type Break = (&'static str, fn(&mut FileDescriptorProto));

#[test]
fn each_kind_of_break_is_found() {
    let before = current();
    let breaks: [Break; 8] = [
        ("a message is removed", |f| drop(f.message_type.pop())),
        ("a field is removed", |f| drop(maintenance(f).field.pop())),
        ("a field has another number", |f| maintenance(f).field[0].number = Some(99)),
        ("a field has another name", |f| maintenance(f).field[0].name = Some("other".to_owned())),
        ("a field has another type", |f| maintenance(f).field[0].r#type = Some(Type::Bytes.into())),
        ("a method is removed", |f| drop(f.service[0].method.pop())),
        ("a method streams no more", |f| f.service[0].method[1].server_streaming = None),
        ("a value of an enum is removed", |f| drop(f.enum_type[0].value.pop())),
    ];
    for (what, change) in breaks {
        let mut files = files();
        change(files.iter_mut().find(|file| file.package() == "drydock.status.v1alpha1").unwrap());
        assert!(!missing(&before, &lines(&files)).is_empty(), "{what}, and nobody noticed");
    }
}

fn maintenance(file: &mut FileDescriptorProto) -> &mut DescriptorProto {
    file.message_type.iter_mut().find(|message| message.name() == "Maintenance").unwrap()
}

fn missing(accepted: &BTreeSet<String>, current: &BTreeSet<String>) -> Vec<String> {
    accepted.difference(current).cloned().collect()
}

fn accepted() -> BTreeSet<String> {
    std::fs::read_to_string(ACCEPTED).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn current() -> BTreeSet<String> {
    lines(&files())
}

fn files() -> Vec<FileDescriptorProto> {
    FileDescriptorSet::decode(drydock_proto::FILE_DESCRIPTOR_SET).unwrap().file
}

/// One line for each thing that a client can rely on. Files that we import have rules of their own.
fn lines(files: &[FileDescriptorProto]) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for file in files.iter().filter(|file| file.package().starts_with("drydock.")) {
        for message in &file.message_type {
            of_message(file.package(), message, &mut lines);
        }
        for enumeration in &file.enum_type {
            of_enum(file.package(), enumeration, &mut lines);
        }
        for service in &file.service {
            of_service(file.package(), service, &mut lines);
        }
    }
    lines
}

fn of_message(scope: &str, message: &DescriptorProto, lines: &mut BTreeSet<String>) {
    let name = format!("{scope}.{}", message.name());
    lines.insert(format!("message {name}"));
    for field in &message.field {
        lines.insert(of_field(&name, message, field));
    }
    for nested in &message.nested_type {
        of_message(&name, nested, lines);
    }
    for enumeration in &message.enum_type {
        of_enum(&name, enumeration, lines);
    }
}

fn of_field(scope: &str, message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let repeated = if field.label() == Label::Repeated { "repeated " } else { "" };
    let optional = if field.proto3_optional() { "optional " } else { "" };
    let scalar = format!("{:?}", field.r#type()).to_lowercase();
    let kind = if field.type_name().is_empty() { &scalar } else { field.type_name() };
    let oneof = field.oneof_index.filter(|_| !field.proto3_optional());
    let oneof = oneof.map_or_else(String::new, |index| {
        format!(" in {}", message.oneof_decl[usize::try_from(index).unwrap()].name())
    });
    format!("field {scope}.{} = {}: {repeated}{optional}{kind}{oneof}", field.name(), field.number())
}

fn of_enum(scope: &str, enumeration: &EnumDescriptorProto, lines: &mut BTreeSet<String>) {
    lines.insert(format!("enum {scope}.{}", enumeration.name()));
    for value in &enumeration.value {
        lines.insert(format!("value {scope}.{}.{} = {}", enumeration.name(), value.name(), value.number()));
    }
}

fn of_service(scope: &str, service: &ServiceDescriptorProto, lines: &mut BTreeSet<String>) {
    for method in &service.method {
        let stream = |streams: bool| if streams { "stream " } else { "" };
        lines.insert(format!(
            "method {scope}.{}.{}({}{}) returns ({}{})",
            service.name(),
            method.name(),
            stream(method.client_streaming()),
            method.input_type(),
            stream(method.server_streaming()),
            method.output_type(),
        ));
    }
}
