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
    /// What a strategic merge patch does with it.
    pub patch: PatchStrategy,
    /// Most items of a list; decoding reads no more, and refuses the object (422, `Too many`).
    pub max_items: Option<usize>,
}

/// What a strategic merge patch does with a value (`x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatchStrategy {
    /// Nothing is said: structs and maps merge, lists are replaced.
    #[default]
    Unset,
    /// The patch's value takes its place, even that of a struct.
    Replace,
    /// The patch's scalars are added to it.
    Merge,
    /// The patch's items are merged into those with the same value of this field.
    MergeBy(&'static str),
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
    /// Bytes, base64 in JSON.
    Bytes,
    /// A 32-bit integer or text (intstr.IntOrString).
    IntOrString,
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
    /// Whether the Go field is a pointer, which is written whenever it is set, even to nothing; None if it is as most of
    /// its shape are: numbers, booleans and structs are pointers, texts are not.
    pub pointer: Option<bool>,
    /// Its schema.
    pub schema: Schema,
}

impl Field {
    /// The same, a pointer in Go.
    #[must_use]
    pub const fn pointer(mut self) -> Self {
        self.pointer = Some(true);
        self
    }

    /// The same, no pointer in Go: left out when it is zero.
    #[must_use]
    pub const fn by_value(mut self) -> Self {
        self.pointer = Some(false);
        self
    }

    /// Whether it is written when it is set to nothing.
    pub fn is_pointer(&self) -> bool {
        let usual =
            !matches!(self.schema.shape, Shape::String | Shape::Bytes | Shape::List(..) | Shape::Map(_));
        self.pointer.unwrap_or(usual && !self.always)
    }
}

/// `x-kubernetes-list-type`: what a list is to managed fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole.
    Atomic,
    /// Unique scalars.
    Set,
    /// Items identified by these keys.
    Map(&'static [&'static str]),
}

impl Schema {
    /// A schema without default or enumeration. Of lists, those of type map merge by their first key under strategic
    /// merge, as nearly all of Kubernetes' do, and the others are replaced.
    pub const fn new(description: &'static str, shape: Shape) -> Self {
        let patch = match &shape {
            Shape::List(_, ListType::Map([key, ..])) => PatchStrategy::MergeBy(key),
            _ => PatchStrategy::Unset,
        };
        Self { description, shape, default: None, enumeration: &[], patch, max_items: None }
    }

    /// The same list with at most so many items.
    #[must_use]
    pub const fn at_most(mut self, items: usize) -> Self {
        self.max_items = Some(items);
        self
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
