//! Schemas that kinds share: `metadata`, conditions, selectors.
//!
//! Structure and field numbers are those of k8s.io/apimachinery/pkg/apis/meta/v1 and k8s.io/api/core/v1. The
//! descriptions here are for readers of this code; OpenAPI has Kubernetes' own texts for definitions that the host
//! has too.

use super::{Field, ListType, ObjectShape, PatchStrategy, Schema, Shape};

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
            list("Objects that this one depends on.", owner(), ListType::Map(&["uid"])),
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

/// A list of metav1.Condition, merged by type.
pub fn conditions_schema(description: &'static str) -> Schema {
    list(description, condition_schema(), ListType::Map(&["type"])).at_most(CONDITIONS_MAX)
}

/// metav1.Condition.
pub fn condition_schema() -> Schema {
    let fields = vec![
        required_text("type", 1, "What the condition is about, in CamelCase."),
        required_text("status", 2, "One of True, False, Unknown."),
        optional("observedGeneration", 3, Schema::new("The generation it was told from.", Shape::Int64))
            .by_value(),
        required("lastTransitionTime", 4, Schema::new("When the status last changed.", Shape::Time)),
        required_text("reason", 5, "Why, for machines."),
        required_text("message", 6, "Why, for people."),
    ];
    object("One aspect of an object's state.", "io.k8s.apimachinery.pkg.apis.meta.v1.Condition", fields)
}

/// metav1.LabelSelector.
pub fn label_selector_schema(description: &'static str) -> Schema {
    let requirement = object(
        "A key, an operator and values.",
        "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement",
        requirement_fields(),
    );
    let fields = vec![
        optional("matchLabels", 1, strings_map("Labels with exactly these values.")),
        optional(
            "matchExpressions",
            2,
            list("Requirements, all of which must hold.", requirement, ListType::Atomic)
                .at_most(SELECTOR_ITEMS_MAX),
        ),
    ];
    atomic(object(description, "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector", fields))
}

/// core/v1 NodeSelector.
pub fn node_selector_schema(description: &'static str) -> Schema {
    let terms = list("Terms, one of which must hold.", node_selector_term(), ListType::Atomic)
        .at_most(SELECTOR_ITEMS_MAX);
    let fields = vec![required("nodeSelectorTerms", 1, terms)];
    atomic(object(description, "io.k8s.api.core.v1.NodeSelector", fields))
}

fn node_selector_term() -> Schema {
    let requirements = |description| {
        let requirement = object(
            "A key, an operator and values.",
            "io.k8s.api.core.v1.NodeSelectorRequirement",
            requirement_fields(),
        );
        list(description, requirement, ListType::Atomic).at_most(SELECTOR_ITEMS_MAX)
    };
    let fields = vec![
        optional("matchExpressions", 1, requirements("Requirements on labels.")),
        optional("matchFields", 2, requirements("Requirements on fields.")),
    ];
    atomic(object("Requirements, all of which must hold.", "io.k8s.api.core.v1.NodeSelectorTerm", fields))
}

fn requirement_fields() -> Vec<Field> {
    vec![
        required_text("key", 1, "What is looked at."),
        required_text("operator", 2, "How it is compared."),
        optional(
            "values",
            3,
            list("What it is compared with.", string(), ListType::Atomic).at_most(SELECTOR_VALUES_MAX),
        ),
    ]
}

/// The only set in Kubernetes' metadata; strategic merge patches add to it.
fn finalizers() -> Schema {
    let set = list("Who must act before deletion ends.", string(), ListType::Set);
    Schema { patch: PatchStrategy::Merge, ..set }
}

fn owner() -> Schema {
    let fields = vec![
        required_text("apiVersion", 5, "API version of the owner."),
        required_text("kind", 1, "Kind of the owner."),
        required_text("name", 3, "Name of the owner."),
        required_text("uid", 4, "UID of the owner."),
        optional("controller", 6, Schema::new("Whether the owner is the controller.", Shape::Boolean)),
        optional(
            "blockOwnerDeletion",
            7,
            Schema::new("Whether it holds up the owner's deletion.", Shape::Boolean),
        ),
    ];
    atomic(object("An owning object.", "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference", fields))
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
        let schemas =
            [meta_schema(), condition_schema(), label_selector_schema(""), node_selector_schema("")];
        schemas.iter().for_each(check);
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
