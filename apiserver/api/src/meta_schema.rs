//! Schemas of the metav1 types that both kinds use, and the words in which the kinds' own schemas are written.
//!
//! Descriptions and protobuf numbers of metav1 are those of k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.

use drydock_machinery::schema::{Field, ListType, ObjectShape, Schema, Shape};

/// An optional field.
pub fn field(name: &'static str, number: u32, schema: Schema) -> Field {
    Field { name, number, required: false, always: false, schema }
}

/// A required field, which is always written.
pub fn required(name: &'static str, number: u32, schema: Schema) -> Field {
    Field { name, number, required: true, always: true, schema }
}

/// A struct.
pub fn object(description: &'static str, definition: &'static str, fields: Vec<Field>) -> Schema {
    Schema::new(description, Shape::Object(ObjectShape { definition, fields, atomic: false }))
}

/// A struct that has one owner as a whole.
pub fn atomic_object(description: &'static str, definition: &'static str, fields: Vec<Field>) -> Schema {
    Schema::new(description, Shape::Object(ObjectShape { definition, fields, atomic: true }))
}

/// Text.
pub fn string(description: &'static str) -> Schema {
    Schema::new(description, Shape::String)
}

/// metav1.Time.
pub fn time(description: &'static str) -> Schema {
    Schema::new(description, Shape::Time)
}

/// A 32-bit integer.
pub fn int32(description: &'static str) -> Schema {
    Schema::new(description, Shape::Int32)
}

/// A 64-bit integer.
pub fn int64(description: &'static str) -> Schema {
    Schema::new(description, Shape::Int64)
}

/// A list.
pub fn list(description: &'static str, items: Schema, list_type: ListType) -> Schema {
    Schema::new(description, Shape::List(Box::new(items), list_type))
}

/// A schema with another description: what a field says of a type that others use too.
pub fn described(description: &'static str, mut schema: Schema) -> Schema {
    schema.description = description;
    schema
}

/// `apiVersion`, `kind`, `metadata`, `spec` and `status` of a kind.
pub fn top_level(
    description: &'static str,
    definition: &'static str,
    metadata: Schema,
    spec: Schema,
    status: Schema,
) -> Schema {
    let fields = vec![
        // The protobuf envelope carries these two, not the message.
        field("apiVersion", 0, string(API_VERSION)),
        field("kind", 0, string(KIND)),
        Field { always: true, ..field("metadata", 1, metadata) },
        required("spec", 2, spec),
        Field { always: true, ..field("status", 3, status) },
    ];
    object(description, definition, fields)
}

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers \
    should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer \
    this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// metav1.ObjectMeta.
pub fn object_meta(description: &'static str) -> Schema {
    let text_map = |description| Schema::new(description, Shape::Map(Box::new(string(""))));
    let fields = vec![
        field(
            "name",
            1,
            string(
                "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
            ),
        ),
        field(
            "generateName",
            2,
            string(
                "GenerateName is an optional prefix, used by the server, to generate a unique name ONLY IF the Name field has not been provided. If this field is used, the name returned to the client will be different than the name passed. This value will also be combined with a unique suffix. The provided value has the same validation rules as the Name field, and may be truncated by the length of the suffix required to make the value unique on the server.\n\nIf this field is specified and the generated name exists, the server will return a 409.\n\nApplied only if Name is not specified. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#idempotency",
            ),
        ),
        field(
            "namespace",
            3,
            string(
                "Namespace defines the space within which each name must be unique. An empty namespace is equivalent to the \"default\" namespace, but \"default\" is the canonical representation. Not all objects are required to be scoped to a namespace - the value of this field for those objects will be empty.\n\nMust be a DNS_LABEL. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces",
            ),
        ),
        field(
            "selfLink",
            4,
            string(
                "Deprecated: selfLink is a legacy read-only field that is no longer populated by the system.",
            ),
        ),
        field(
            "uid",
            5,
            string(
                "UID is the unique in time and space value for this object. It is typically generated by the server on successful creation of a resource and is not allowed to change on PUT operations.\n\nPopulated by the system. Read-only. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#uids",
            ),
        ),
        field(
            "resourceVersion",
            6,
            string(
                "An opaque value that represents the internal version of this object that can be used by clients to determine when objects have changed. May be used for optimistic concurrency, change detection, and the watch operation on a resource or set of resources. Clients must treat these values as opaque and passed unmodified back to the server. They may only be valid for a particular resource or set of resources.\n\nPopulated by the system. Read-only. Value must be treated as opaque by clients and . More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#concurrency-control-and-consistency",
            ),
        ),
        field(
            "generation",
            7,
            int64(
                "A sequence number representing a specific generation of the desired state. Populated by the system. Read-only.",
            ),
        ),
        field(
            "creationTimestamp",
            8,
            time(
                "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
            ),
        ),
        field(
            "deletionTimestamp",
            9,
            time(
                "DeletionTimestamp is RFC 3339 date and time at which this resource will be deleted. This field is set by the server when a graceful deletion is requested by the user, and is not directly settable by a client. The resource is expected to be deleted (no longer visible from resource lists, and not reachable by name) after the time in this field, once the finalizers list is empty. As long as the finalizers list contains items, deletion is blocked. Once the deletionTimestamp is set, this value may not be unset or be set further into the future, although it may be shortened or the resource may be deleted prior to this time. If not set, graceful deletion of the object has not been requested.\n\nPopulated by the system when a graceful deletion is requested. Read-only. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
            ),
        ),
        field(
            "deletionGracePeriodSeconds",
            10,
            int64(
                "Number of seconds allowed for this object to gracefully terminate before it will be removed from the system. Only set when deletionTimestamp is also set. May only be shortened. Read-only.",
            ),
        ),
        field(
            "labels",
            11,
            text_map(
                "Map of string keys and values that can be used to organize and categorize (scope and select) objects. May match selectors of replication controllers and services. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels",
            ),
        ),
        field(
            "annotations",
            12,
            text_map(
                "Annotations is an unstructured key value map stored with a resource that may be set by external tools to store and retrieve arbitrary metadata. They are not queryable and should be preserved when modifying objects. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations",
            ),
        ),
        field(
            "ownerReferences",
            13,
            list(
                "List of objects depended by this object. If ALL objects in the list have been deleted, this object will be garbage collected. If this object is managed by a controller, then an entry in this list will point to this controller, with the controller field set to true. There cannot be more than one managing controller.",
                owner_reference(),
                ListType::Map(&["uid"]),
            ),
        ),
        field(
            "finalizers",
            14,
            list(
                "Must be empty before the object is deleted from the registry. Each entry is an identifier for the responsible component that will remove the entry from the list. If the deletionTimestamp of the object is non-nil, entries in this list can only be removed. Finalizers may be processed and removed in any order.  Order is NOT enforced because it introduces significant risk of stuck finalizers. finalizers is a shared field, any actor with permission can reorder it. If the finalizer list is processed in order, then this can lead to a situation in which the component responsible for the first finalizer in the list is waiting for a signal (field value, external system, or other) produced by a component responsible for a finalizer later in the list, resulting in a deadlock. Without enforced ordering finalizers are free to order amongst themselves and are not vulnerable to ordering changes in the list.",
                string(""),
                ListType::Set,
            ),
        ),
        field(
            "managedFields",
            17,
            list(
                "ManagedFields maps workflow-id and version to the set of fields that are managed by that workflow. This is mostly for internal housekeeping, and users typically shouldn't need to set or understand this field. A workflow can be the user's name, a controller's name, or the name of a specific apply path like \"ci-cd\". The set of fields is always in the version that the workflow used when modifying the object.",
                managed_fields_entry(),
                ListType::Atomic,
            ),
        ),
    ];
    object(description, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", fields)
}

fn owner_reference() -> Schema {
    let fields = vec![
        required("apiVersion", 5, string("API version of the referent.")),
        required(
            "kind",
            1,
            string(
                "Kind of the referent. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
            ),
        ),
        required(
            "name",
            3,
            string(
                "Name of the referent. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
            ),
        ),
        required(
            "uid",
            4,
            string(
                "UID of the referent. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#uids",
            ),
        ),
        field(
            "controller",
            6,
            Schema::new("If true, this reference points to the managing controller.", Shape::Boolean),
        ),
        field(
            "blockOwnerDeletion",
            7,
            Schema::new(
                "If true, AND if the owner has the \"foregroundDeletion\" finalizer, then the owner cannot be deleted from the key-value store until this reference is removed. See https://kubernetes.io/docs/concepts/architecture/garbage-collection/#foreground-deletion for how the garbage collector interacts with this field and enforces the foreground deletion. Defaults to false. To set this field, a user needs \"delete\" permission of the owner, otherwise 422 (Unprocessable Entity) will be returned.",
                Shape::Boolean,
            ),
        ),
    ];
    let description = "OwnerReference contains enough information to let you identify an owning object. An owning object must be in the same namespace as the dependent, or be cluster-scoped, so there is no namespace field.";
    atomic_object(description, "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference", fields)
}

fn managed_fields_entry() -> Schema {
    let fields = vec![
        field("manager", 1, string("Manager is an identifier of the workflow managing these fields.")),
        field(
            "operation",
            2,
            string(
                "Operation is the type of operation which lead to this ManagedFieldsEntry being created. The only valid values for this field are 'Apply' and 'Update'.",
            ),
        ),
        field(
            "apiVersion",
            3,
            string(
                "APIVersion defines the version of this resource that this field set applies to. The format is \"group/version\" just like the top-level APIVersion field. It is necessary to track the version of a field set because it cannot be automatically converted.",
            ),
        ),
        field(
            "time",
            4,
            time(
                "Time is the timestamp of when the ManagedFields entry was added. The timestamp will also be updated if a field is added, the manager changes any of the owned fields value or removes a field. The timestamp does not update when a field is removed from the entry because another manager took it over.",
            ),
        ),
        field(
            "fieldsType",
            6,
            string(
                "FieldsType is the discriminator for the different fields format and version. There is currently only one possible value: \"FieldsV1\"",
            ),
        ),
        field(
            "fieldsV1",
            7,
            Schema::new(
                "FieldsV1 holds the first JSON version format as described in the \"FieldsV1\" type.",
                Shape::Raw,
            ),
        ),
        field(
            "subresource",
            8,
            string(
                "Subresource is the name of the subresource used to update that object, or empty string if the object was updated through the main resource. The value of this field is used to distinguish between managers, even if they share the same name. For example, a status update will be distinct from a regular update using the same manager name. Note that the APIVersion field is not related to the Subresource field and it always corresponds to the version of the main resource.",
            ),
        ),
    ];
    let description = "ManagedFieldsEntry is a workflow-id, a FieldSet and the group version of the resource that the fieldset applies to.";
    object(description, "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry", fields)
}

/// A list of metav1.Condition, keyed by type.
pub fn conditions(description: &'static str) -> Schema {
    let fields = vec![
        required("type", 1, string("type of condition in CamelCase or in foo.example.com/CamelCase.")),
        required("status", 2, string("status of the condition, one of True, False, Unknown.")),
        field(
            "observedGeneration",
            3,
            int64(
                "observedGeneration represents the .metadata.generation that the condition was set based upon. For instance, if .metadata.generation is currently 12, but the .status.conditions[x].observedGeneration is 9, the condition is out of date with respect to the current state of the instance.",
            ),
        ),
        required(
            "lastTransitionTime",
            4,
            time(
                "lastTransitionTime is the last time the condition transitioned from one status to another. This should be when the underlying condition changed.  If that is not known, then using the time when the API field changed is acceptable.",
            ),
        ),
        required(
            "reason",
            5,
            string(
                "reason contains a programmatic identifier indicating the reason for the condition's last transition. Producers of specific condition types may define expected values and meanings for this field, and whether the values are considered a guaranteed API. The value should be a CamelCase string. This field may not be empty.",
            ),
        ),
        required(
            "message",
            6,
            string(
                "message is a human readable message indicating details about the transition. This may be an empty string.",
            ),
        ),
    ];
    let item = object(
        "Condition contains details for one aspect of the current state of this API Resource.",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Condition",
        fields,
    );
    list(description, item, ListType::Map(&["type"]))
}

/// metav1.LabelSelector.
pub fn label_selector(description: &'static str) -> Schema {
    let requirement = vec![
        required("key", 1, string("key is the label key that the selector applies to.")),
        required(
            "operator",
            2,
            string(
                "operator represents a key's relationship to a set of values. Valid operators are In, NotIn, Exists and DoesNotExist.",
            ),
        ),
        field(
            "values",
            3,
            list(
                "values is an array of string values. If the operator is In or NotIn, the values array must be non-empty. If the operator is Exists or DoesNotExist, the values array must be empty. This array is replaced during a strategic merge patch.",
                string(""),
                ListType::Atomic,
            ),
        ),
    ];
    let requirement = object(
        "A label selector requirement is a selector that contains values, a key, and an operator that relates the key and values.",
        "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement",
        requirement,
    );
    let labels = Schema::new(
        "matchLabels is a map of {key,value} pairs. A single {key,value} in the matchLabels map is equivalent to an element of matchExpressions, whose key field is \"key\", the operator is \"In\", and the values array contains only \"value\". The requirements are ANDed.",
        Shape::Map(Box::new(string(""))),
    );
    let fields = vec![
        field("matchLabels", 1, labels),
        field(
            "matchExpressions",
            2,
            list(
                "matchExpressions is a list of label selector requirements. The requirements are ANDed.",
                requirement,
                ListType::Atomic,
            ),
        ),
    ];
    atomic_object(description, "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector", fields)
}
