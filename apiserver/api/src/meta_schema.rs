//! Constructors for the schemas of the kinds, based on those of the machinery.

use drydock_machinery::schema::common::{atomic, meta_schema, object, optional, required};
use drydock_machinery::schema::{Field, Schema, Shape};

/// An object that is atomic for field ownership.
pub fn atomic_object(description: &'static str, definition: &'static str, fields: Vec<Field>) -> Schema {
    atomic(object(description, definition, fields))
}

/// A string.
pub fn string(description: &'static str) -> Schema {
    Schema::new(description, Shape::String)
}

/// metav1.Time.
pub fn time(description: &'static str) -> Schema {
    Schema::new(description, Shape::Time)
}

/// A boolean.
pub fn boolean(description: &'static str) -> Schema {
    Schema::new(description, Shape::Boolean)
}

/// A 32-bit integer.
pub fn int32(description: &'static str) -> Schema {
    Schema::new(description, Shape::Int32)
}

/// A 64-bit integer.
pub fn int64(description: &'static str) -> Schema {
    Schema::new(description, Shape::Int64)
}

/// The schema of `metadata`, with the kind's own description.
pub fn object_meta(description: &'static str) -> Schema {
    Schema { description, ..meta_schema() }
}

/// The schema of a kind with `apiVersion`, `kind`, `metadata`, `spec` and `status`.
pub fn top_level(
    description: &'static str,
    definition: &'static str,
    metadata: Schema,
    spec: Schema,
    status: Schema,
) -> Schema {
    let fields = vec![
        // In protobuf, the envelope (runtime.Unknown) has these two fields, and not the message.
        optional("apiVersion", 0, string(API_VERSION)),
        optional("kind", 0, string(KIND)),
        Field { always: true, ..optional("metadata", 1, metadata) },
        required("spec", 2, spec),
        Field { always: true, ..optional("status", 3, status) },
    ];
    object(description, definition, fields)
}

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers \
    should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer \
    this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
