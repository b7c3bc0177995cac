//! The schema of `metadata`, and the parts that schemas are put together from.
//!
//! Structure and field numbers are those of k8s.io/apimachinery/pkg/apis/meta/v1 and k8s.io/api/core/v1. The
//! descriptions here are for readers of this code; OpenAPI has Kubernetes' own texts for definitions that the host
//! has too.

use super::{ApiType, Field, ListType, ObjectShape, PatchStrategy, Schema, Shape};
use crate::metav1::OwnerReference;

/// Definition of an entry of `metadata.managedFields`.
pub const MANAGED_FIELDS_ENTRY: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry";

/// Maximum number of entries of managed fields of an object. Kubernetes has neither this limit nor those below.
pub const MANAGERS_MAX: usize = 10_000;
/// Maximum number of conditions of an object.
pub const CONDITIONS_MAX: usize = 100;
/// Maximum number of terms of a node selector, and of requirements in one list of a selector.
pub const SELECTOR_ITEMS_MAX: usize = 1000;
/// Maximum number of values of one requirement of a selector.
pub const SELECTOR_VALUES_MAX: usize = 4096;

/// The text of the field `apiVersion` of every object.
pub const API_VERSION_TEXT: &str = "APIVersion defines the versioned schema of this representation of an object. \
    Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More \
    info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
/// The text of the field `kind` of every object.
pub const KIND_TEXT: &str = "Kind is a string value representing the REST resource this object represents. Servers may \
    infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// `metadata` of an object.
pub fn meta_schema() -> Schema {
    let fields = vec![
        text("name", 1, "Unique within the namespace."),
        text("generateName", 2, "Prefix of a name that the server completes."),
        text("namespace", 3, "Space within which the name is unique."),
        text("selfLink", 4, "No longer set."),
        text("uid", 5, "Unique in time and space."),
        text("resourceVersion", 6, "Changes with each write."),
        optional("generation", 7, Schema::new("Counts changes of the desired state.", Shape::Int64))
            .by_value(),
        optional("creationTimestamp", 8, Schema::new("When the server created the object.", Shape::Time))
            .by_value(),
        optional("deletionTimestamp", 9, Schema::new("When deletion was asked for.", Shape::Time)),
        optional(
            "deletionGracePeriodSeconds",
            10,
            Schema::new("Seconds allowed for deletion.", Shape::Int64),
        ),
        optional("labels", 11, strings_map("What selectors select on.")),
        optional("annotations", 12, strings_map("Arbitrary data of tools.")),
        optional(
            "ownerReferences",
            13,
            list("Objects that this one depends on.", OwnerReference::schema(), ListType::Map(&["uid"])),
        ),
        optional("finalizers", 14, finalizers()),
        // An empty list differs from an absent one: it resets the managed fields.
        optional(
            "managedFields",
            17,
            list("Who manages which fields.", managed_entry(), ListType::Atomic).at_most(MANAGERS_MAX),
        )
        .pointer(),
    ];
    object("Metadata that every object has.", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", fields)
}

/// The only set in Kubernetes' metadata; strategic merge patches add to it.
fn finalizers() -> Schema {
    let set = list("Who must act before deletion ends.", string(), ListType::Set);
    Schema { patch: PatchStrategy::Merge, ..set }
}

fn managed_entry() -> Schema {
    let fields = vec![
        text("manager", 1, "Who."),
        text("operation", 2, "Apply or Update."),
        text("apiVersion", 3, "The version that the fields are of."),
        optional("time", 4, Schema::new("When the entry last changed.", Shape::Time)),
        text("fieldsType", 6, "Always FieldsV1."),
        optional("fieldsV1", 7, Schema::new("The set of fields.", Shape::Raw)),
        text("subresource", 8, "The subresource that was written."),
    ];
    object("The fields of one manager.", MANAGED_FIELDS_ENTRY, fields)
}

/// A struct with the OpenAPI definition `definition`.
pub fn object(description: &'static str, definition: &'static str, fields: Vec<Field>) -> Schema {
    Schema::new(description, Shape::Object(ObjectShape { definition, description, fields, atomic: false }))
}

/// Returns the struct as an atomic one: appliers replace it as a whole.
#[must_use]
pub fn atomic(mut schema: Schema) -> Schema {
    if let Shape::Object(shape) = &mut schema.shape {
        shape.atomic = true;
    }
    schema
}

/// A list of `items`.
pub fn list(description: &'static str, items: Schema, list_type: ListType) -> Schema {
    Schema::new(description, Shape::List(Box::new(items), list_type))
}

/// A map of strings to strings.
pub fn strings_map(description: &'static str) -> Schema {
    Schema::new(description, Shape::Map(Box::new(string())))
}

/// A string without a description.
pub const fn string() -> Schema {
    Schema::new("", Shape::String)
}

/// A field that is omitted if it is empty.
pub const fn optional(name: &'static str, number: u32, schema: Schema) -> Field {
    Field { name, number, required: false, always: false, pointer: None, schema }
}

/// A field that is required and always written.
pub const fn required(name: &'static str, number: u32, schema: Schema) -> Field {
    Field { name, number, required: true, always: true, pointer: None, schema }
}

/// A string that is omitted if it is empty.
pub const fn text(name: &'static str, number: u32, description: &'static str) -> Field {
    optional(name, number, Schema::new(description, Shape::String))
}

/// A string that is required and always written.
pub const fn required_text(name: &'static str, number: u32, description: &'static str) -> Field {
    required(name, number, Schema::new(description, Shape::String))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_and_numbers_are_unique_in_a_struct() {
        check(&meta_schema());
    }

    fn check(schema: &Schema) {
        match &schema.shape {
            Shape::Object(shape) => {
                for (index, field) in shape.fields.iter().enumerate() {
                    let others = &shape.fields[index + 1..];
                    assert!(
                        others.iter().all(|f| f.name != field.name && f.number != field.number),
                        "{}",
                        field.name
                    );
                    check(&field.schema);
                }
            }
            Shape::List(items, _) | Shape::Map(items) => check(items),
            _ => (),
        }
    }
}
