//! The schema of a kind: one description of every field, from which decoding, OpenAPI, strategic merge, managed
//! fields and the protobuf encoding are derived.

mod api_type;
pub mod common;
pub(crate) mod enumeration;

pub use api_type::ApiType;
pub use drydock_schema_derive::ApiType;

/// A value's schema.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The text of `kubectl explain`.
    pub description: &'static str,
    /// The type and structure of the value.
    pub shape: Shape,
    /// The default as JSON text: OpenAPI shows it, and decoding fills it in.
    pub default: Option<&'static str>,
    /// Accepted strings: OpenAPI shows them, and validation, not decoding, enforces them.
    pub enumeration: &'static [&'static str],
    /// How a strategic merge patch changes the value.
    pub patch: PatchStrategy,
    /// Maximum number of items of a list; decoding stops there and refuses the object (422, `Too many`).
    pub max_items: Option<usize>,
}

/// How a strategic merge patch changes a value (`x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatchStrategy {
    /// The default: structs and maps are merged, lists are replaced.
    #[default]
    Unset,
    /// The patch's value replaces it, also a struct.
    Replace,
    /// The scalars of the patch are added.
    Merge,
    /// Each item of the patch is merged into the item that has the same value in this field.
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
    /// The text of the type; the text of a field of this type is that of its [`Schema`].
    pub description: &'static str,
    /// In the order of the Go struct's fields.
    pub fields: Vec<Field>,
    /// Whether managed fields treat the struct as one value (`+structType=atomic`).
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
    /// Whether the Go field has no `omitempty` and is not a pointer: protobuf and JSON always write it.
    pub always: bool,
    /// Whether the Go field is a pointer, which is written whenever it is set, even to the zero value. `None` if it
    /// is like most fields of its shape: numbers, booleans and structs are pointers, strings are not.
    pub pointer: Option<bool>,
    /// Its schema.
    pub schema: Schema,
}

impl Field {
    /// Returns the field as a Go pointer.
    #[must_use]
    pub const fn pointer(mut self) -> Self {
        self.pointer = Some(true);
        self
    }

    /// Returns the field as a Go value, which is omitted if it is zero.
    #[must_use]
    pub const fn by_value(mut self) -> Self {
        self.pointer = Some(false);
        self
    }

    /// Whether the field is written when it is set to the zero value.
    pub fn is_pointer(&self) -> bool {
        let usual =
            !matches!(self.schema.shape, Shape::String | Shape::Bytes | Shape::List(..) | Shape::Map(_));
        self.pointer.unwrap_or(usual && !self.always)
    }
}

/// `x-kubernetes-list-type`: how managed fields treat a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole.
    Atomic,
    /// Unique scalars.
    Set,
    /// Items identified by these fields.
    Map(&'static [&'static str]),
}

impl Schema {
    /// A schema without default and enumeration. Lists of type map merge by their first key under strategic merge, as
    /// nearly all of Kubernetes' do; other lists are replaced.
    pub const fn new(description: &'static str, shape: Shape) -> Self {
        let patch = match &shape {
            Shape::List(_, ListType::Map([key, ..])) => PatchStrategy::MergeBy(key),
            _ => PatchStrategy::Unset,
        };
        Self { description, shape, default: None, enumeration: &[], patch, max_items: None }
    }

    /// Returns the schema with this text.
    #[must_use]
    pub const fn described(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// Returns the schema of metav1.MicroTime in place of metav1.Time.
    #[must_use]
    pub fn micro_time(mut self) -> Self {
        self.shape = Shape::MicroTime;
        self
    }

    /// Returns the schema with a default, as JSON text.
    #[must_use]
    pub const fn default_value(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// Returns the schema of a string with these accepted values.
    #[must_use]
    pub const fn one_of(mut self, values: &'static [&'static str]) -> Self {
        self.enumeration = values;
        self
    }

    /// Returns the list with another list type, and the patch strategy that lists of this type have by default. A
    /// schema of another shape is returned as it is.
    #[must_use]
    pub fn list_type(self, list_type: ListType) -> Self {
        let Self { description, shape, default, max_items, .. } = self;
        let shape = match shape {
            Shape::List(items, _) => Shape::List(items, list_type),
            other => other,
        };
        Self { default, max_items, ..Self::new(description, shape) }
    }

    /// Returns the schema with another patch strategy.
    #[must_use]
    pub const fn patch_strategy(mut self, patch: PatchStrategy) -> Self {
        self.patch = patch;
        self
    }

    /// Returns the list with a limit on the number of items.
    #[must_use]
    pub const fn at_most(mut self, items: usize) -> Self {
        self.max_items = Some(items);
        self
    }

    /// Returns the schema of a struct's field, or of a map's values.
    pub fn field(&self, name: &str) -> Option<&Schema> {
        match &self.shape {
            Shape::Object(o) => o.fields.iter().find(|f| f.name == name).map(|f| &f.schema),
            Shape::Map(values) => Some(values),
            _ => None,
        }
    }
}
