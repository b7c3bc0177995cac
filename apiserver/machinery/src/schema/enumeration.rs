//! Validates the enumerations of a schema on an untyped object, because errors show the value that was sent.

use serde_json::Value;

use super::{Schema, Shape};
use crate::field::{ERRORS_MAX, Error, ErrorList, Path};
use crate::object::Object;

/// The enumerations below a value: a part of its schema.
#[derive(Debug)]
enum EnumerationNode {
    /// The value itself is a string of these.
    OneOf(&'static [&'static str]),
    /// These fields of a struct have enumerations.
    Fields(Vec<(&'static str, EnumerationNode)>),
    /// Items of a list have enumerations.
    Items(Box<EnumerationNode>),
    /// Values of a map have enumerations.
    Values(Box<EnumerationNode>),
}

/// The enumerations of a kind, by its top-level fields.
#[derive(Debug)]
pub(crate) struct Enumerations(Vec<(&'static str, EnumerationNode)>);

impl Enumerations {
    /// The enumerations of this schema.
    pub(crate) fn of(schema: &Schema) -> Self {
        match node(schema) {
            Some(EnumerationNode::Fields(fields)) => Self(fields),
            _ => Self(Vec::new()),
        }
    }

    /// Returns the errors for unsupported values in the status, or in everything else.
    pub(crate) fn validate(&self, object: &Object, in_status: bool) -> ErrorList {
        let mut errors = ErrorList::new();
        for (name, node) in self.0.iter().filter(|(name, _)| (*name == "status") == in_status) {
            if let Some(value) = object.0.get(*name) {
                node.validate(value, &Place { parent: None, step: PlaceStep::Field(name) }, &mut errors);
            }
        }
        errors
    }
}

/// `None` if the value has no enumerations.
fn node(schema: &Schema) -> Option<EnumerationNode> {
    match &schema.shape {
        Shape::String if !schema.enumeration.is_empty() => Some(EnumerationNode::OneOf(schema.enumeration)),
        Shape::Object(shape) => {
            let fields = shape.fields.iter().filter_map(|field| Some((field.name, node(&field.schema)?)));
            Some(fields.collect::<Vec<_>>()).filter(|fields| !fields.is_empty()).map(EnumerationNode::Fields)
        }
        Shape::List(items, _) => node(items).map(|node| EnumerationNode::Items(Box::new(node))),
        Shape::Map(values) => node(values).map(|node| EnumerationNode::Values(Box::new(node))),
        _ => None,
    }
}

/// Where a value stands. Most values are accepted, and need no path.
struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: PlaceStep<'a>,
}

enum PlaceStep<'a> {
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl Place<'_> {
    fn path(&self) -> Path {
        match (self.parent.map(Place::path), &self.step) {
            (Some(parent), PlaceStep::Field(name)) => parent.child(name),
            (Some(parent), PlaceStep::Key(key)) => parent.key(key),
            (Some(parent), PlaceStep::Index(index)) => parent.index(*index),
            (None, PlaceStep::Field(name) | PlaceStep::Key(name)) => Path::new(name),
            (None, PlaceStep::Index(index)) => Path::new("").index(*index),
        }
    }
}

impl EnumerationNode {
    fn validate(&self, value: &Value, place: &Place<'_>, errors: &mut ErrorList) {
        match (self, value) {
            (Self::OneOf(supported), Value::String(value))
                if !supported.contains(&value.as_str()) && errors.len() < ERRORS_MAX =>
            {
                errors.push(Error::not_supported(place.path(), value.as_str(), supported));
            }
            (Self::Fields(nodes), Value::Object(fields)) => {
                for (name, node) in nodes {
                    if let Some(value) = fields.get(*name) {
                        node.validate(
                            value,
                            &Place { parent: Some(place), step: PlaceStep::Field(name) },
                            errors,
                        );
                    }
                }
            }
            (Self::Items(node), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    node.validate(
                        item,
                        &Place { parent: Some(place), step: PlaceStep::Index(index) },
                        errors,
                    );
                }
            }
            (Self::Values(node), Value::Object(values)) => {
                for (key, value) in values {
                    node.validate(value, &Place { parent: Some(place), step: PlaceStep::Key(key) }, errors);
                }
            }
            _ => {}
        }
    }
}
