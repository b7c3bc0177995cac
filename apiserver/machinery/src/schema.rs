//! The schema of a kind: one description of every field from which decoding, OpenAPI, strategic merge, managed
//! fields and the protobuf form all follow.

pub mod common;

/// A value's schema.
#[derive(Clone, Debug)]
pub struct Schema {
    /// What kubectl explain prints.
    pub description: &'static str,
    /// Shape.
    pub shape: Shape,
    /// Default that OpenAPI shows and decoding fills in, as JSON text.
    pub default: Option<&'static str>,
    /// Accepted strings, shown in OpenAPI; enforced by validation, not by decoding.
    pub enumeration: &'static [&'static str],
}

/// Shapes of JSON values.
#[derive(Clone, Debug)]
pub enum Shape {
    /// `true`, `false`
    Boolean,
    /// 32-bit integer.
    Int32,
    /// 64-bit integer.
    Int64,
    /// UTF-8 text.
    String,
    /// RFC 3339, whole seconds (metav1.Time).
    Time,
    /// RFC 3339, microseconds (metav1.MicroTime).
    MicroTime,
    /// Free-form JSON object (FieldsV1).
    Raw,
    /// A struct.
    Object(ObjectShape),
    /// A map with string keys.
    Map(Box<Schema>),
    /// A list.
    List(Box<Schema>, ListType),
}

/// A struct's fields.
#[derive(Clone, Debug, Default)]
pub struct ObjectShape {
    /// OpenAPI definition name (`io.k8s.api.coordination.v1.LeaseSpec`); empty inlines it.
    pub definition: &'static str,
    /// In the order of the Go struct.
    pub fields: Vec<Field>,
    /// Whether managed fields treat it as one value (`+structType=atomic`).
    pub atomic: bool,
}

/// One field of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// JSON name.
    pub name: &'static str,
    /// Protobuf field number.
    pub number: u32,
    /// Listed under `required` in OpenAPI.
    pub required: bool,
    /// A Go field without `omitempty` that is no pointer: protobuf and JSON always write it.
    pub always: bool,
    /// Its schema.
    pub schema: Schema,
}

/// `x-kubernetes-list-type`, with the strategic-merge key where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole.
    Atomic,
    /// Unique scalars.
    Set,
    /// Items identified by these keys; merged by the first under strategic merge.
    Map(&'static [&'static str]),
}

impl Schema {
    /// A schema without default or enumeration.
    pub const fn new(description: &'static str, shape: Shape) -> Self {
        Self { description, shape, default: None, enumeration: &[] }
    }

    /// The schema of a struct's field.
    pub fn field(&self, name: &str) -> Option<&Schema> {
        match &self.shape {
            Shape::Object(o) => o.fields.iter().find(|f| f.name == name).map(|f| &f.schema),
            Shape::Map(values) => Some(values),
            _ => None,
        }
    }
}
