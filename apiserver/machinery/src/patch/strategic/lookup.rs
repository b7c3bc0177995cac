//! Looks up the schema of a field that a patch names (apimachinery's LookupPatchMeta).

use super::error::{Error, Result};
use crate::schema::{PatchStrategy, Schema, Shape};

/// The items of a list, and how they are merged.
pub(super) struct ListMeta<'s> {
    pub items: &'s Schema,
    pub strategy: PatchStrategy,
}

impl ListMeta<'_> {
    /// Returns the field by which the items are merged.
    pub(super) fn key(&self) -> Option<&'static str> {
        match self.strategy {
            PatchStrategy::MergeBy(key) => Some(key),
            _ => None,
        }
    }

    pub(super) fn merges(&self) -> bool {
        matches!(self.strategy, PatchStrategy::Merge | PatchStrategy::MergeBy(_))
    }
}

/// Returns the schema of a struct's field. Like Go, ignores the case of the name if no field matches exactly.
pub(super) fn field<'s>(schema: &'s Schema, name: &str) -> Result<&'s Schema> {
    let Shape::Object(shape) = &schema.shape else { return Err(no_struct(schema, name)) };
    let exact = shape.fields.iter().find(|field| field.name == name);
    let found = exact.or_else(|| shape.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)));
    let structure = shape.definition.rsplit('.').next().unwrap_or_default();
    found.map(|field| &field.schema).ok_or_else(|| Error::no_field(structure, name))
}

/// As [`field`], for a field that is a list.
pub(super) fn list<'s>(schema: &'s Schema, name: &str) -> Result<ListMeta<'s>> {
    let found = field(schema, name)?;
    match &found.shape {
        Shape::List(items, _) if matches!(items.shape, Shape::List(..)) => {
            Err(Error::Other("unexpected slice of slice".to_owned()))
        }
        Shape::List(items, _) => Ok(ListMeta { items, strategy: found.patch }),
        _ => Err(Error::Other("expected slice or array type, but got: struct".to_owned())),
    }
}

fn no_struct(schema: &Schema, name: &str) -> Error {
    let kind = match &schema.shape {
        Shape::Time => return Error::no_field("Time", name),
        Shape::MicroTime => return Error::no_field("MicroTime", name),
        Shape::Raw => return Error::no_field("FieldsV1", name),
        Shape::IntOrString => return Error::no_field("IntOrString", name),
        _ => kind(schema),
    };
    Error::Other(format!("merging an object in json but data type is not struct, instead is: {kind}"))
}

/// The reflect.Kind of the Go type.
pub(super) fn kind(schema: &Schema) -> &'static str {
    match &schema.shape {
        Shape::Boolean => "bool",
        Shape::Int32 => "int32",
        Shape::Int64 => "int64",
        Shape::String => "string",
        Shape::List(..) | Shape::Bytes => "slice",
        Shape::Map(_) => "map",
        Shape::IntOrString | Shape::Time | Shape::MicroTime | Shape::Raw | Shape::Object(_) => "struct",
    }
}
