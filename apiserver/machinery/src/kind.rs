//! A kind: names, schema and strategy (Kubernetes: registry/rest strategies). All of it pure.

use serde_json::{Map, Value};

use crate::field::ErrorList;
use crate::names::{self, NameRule};
use crate::object::Object;
use crate::schema::Schema;
use crate::table;

/// Names of a kind, as discovery gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// CamelCase kind.
    pub kind: &'static str,
    /// Lower-case plural: the resource.
    pub plural: &'static str,
    /// Lower-case singular.
    pub singular: &'static str,
    /// Short names for kubectl.
    pub short_names: &'static [&'static str],
    /// Categories for kubectl (`all` and the like).
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

impl Names {
    /// `group/version`
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

/// A printer column (metav1.TableColumnDefinition).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Header.
    pub name: &'static str,
    /// OpenAPI type: `string`, `integer`, `date`.
    pub type_: &'static str,
    /// OpenAPI format; `name` marks the identifying column.
    pub format: &'static str,
    /// What it shows.
    pub description: &'static str,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: i32,
}

/// Limits on what a namespace may have of a kind, as a ResourceQuota would set them: on the number of objects in a state
/// that their makers can bring about at will, and on the bytes of all.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// What a refusal calls it.
    pub name: &'static str,
    /// Most objects of a namespace that count.
    pub hard: usize,
    /// Dotted paths to the fields that `counts` looks at.
    pub looks_at: &'static [&'static str],
    /// Whether an object that has these fields at least counts.
    pub counts: fn(&Object) -> bool,
    /// What a refusal says that can be done.
    pub mend: &'static str,
    /// Bytes of all objects of a namespace, from which on it gets no more.
    pub bytes: BytesQuota,
}

/// The part of a [`Quota`] that is about bytes.
#[derive(Clone, Copy, Debug)]
pub struct BytesQuota {
    /// What a refusal calls it.
    pub name: &'static str,
    /// As many are enough; requests in flight may go beyond it by what they add.
    pub hard: u64,
    /// What a refusal says that can be done.
    pub mend: &'static str,
}

/// The moment of a request, injected (UTC).
pub type Now = jiff::Timestamp;

/// A kind's strategy; what a kind does not say, any simple kind with `spec` and `status` would. Methods named `validate_*`
/// do not change the object and return every error.
pub trait Kind: Send + Sync + 'static {
    /// Names and scope.
    fn names(&self) -> &Names;
    /// Schema of the whole object (`apiVersion`, `kind`, `metadata`, ...).
    fn schema(&self) -> &Schema;
    /// Fills in defaults; runs after decoding, before admission, and before managed fields are tracked.
    fn default(&self, _object: &mut Object) {}
    /// Before a create is validated: takes back what a client may not set (status).
    fn prepare_for_create(&self, object: &mut Object) {
        if self.has_status() {
            reset_status(object);
        }
    }
    /// Errors of a new object, beyond those of its metadata.
    fn validate_create(&self, _object: &Object, _now: Now) -> ErrorList {
        ErrorList::new()
    }
    /// Before a main-resource update is validated: keeps the old status and the like.
    fn prepare_for_update(&self, new: &mut Object, old: &Object) {
        keep(new, old, "status");
    }
    /// Errors of a main-resource update, beyond those of its metadata.
    fn validate_update(&self, new: &Object, _old: &Object, now: Now) -> ErrorList {
        self.validate_create(new, now)
    }
    /// Before a status update is validated: keeps the old spec (metadata is reset by the server).
    fn prepare_for_status_update(&self, new: &mut Object, old: &Object) {
        keep(new, old, "spec");
    }
    /// Errors of a status update.
    fn validate_status_update(&self, _new: &Object, _old: &Object, _now: Now) -> ErrorList {
        ErrorList::new()
    }
    /// A last word before an object that is to be deleted is marked (`deletionTimestamp` set, finalizers pending).
    fn prepare_for_delete(&self, _object: &mut Object) {}
    /// What names must be, beside what every name must.
    fn name_rule(&self) -> NameRule {
        names::name_is_dns_subdomain
    }
    /// Whether names may be made of `generateName`.
    fn allows_generate_name(&self) -> bool {
        true
    }
    /// Whether `metadata.generation` counts changes of the desired state.
    fn counts_generation(&self) -> bool {
        true
    }
    /// Whether there is a `status`, and a subresource to write it.
    fn has_status(&self) -> bool {
        self.schema().field("status").is_some()
    }
    /// Whether a write to the status leaves labels, annotations, finalizers and owners as they are.
    fn status_keeps_metadata(&self) -> bool {
        true
    }
    /// Whether an update of what is not there creates it.
    fn allows_create_on_update(&self) -> bool {
        false
    }
    /// Whether an update without resourceVersion is taken.
    fn allows_unconditional_update(&self) -> bool {
        true
    }
    /// Most bytes of JSON that an object may have without its status, managed fields included, after a write to the object
    /// itself. A write that makes a larger object smaller passes, and one to the status is not looked at: the status has
    /// room of its own.
    fn max_bytes_without_status(&self) -> Option<usize> {
        None
    }
    /// The limit on objects in a namespace; creates beyond it are refused.
    fn quota(&self) -> Option<Quota> {
        None
    }
    /// Dotted paths to strings that field selectors may name, beside `metadata.name` and `metadata.namespace`.
    fn selectable_fields(&self) -> &[&'static str] {
        &[]
    }
    /// Warnings for the client.
    fn warnings(&self, _new: &Object, _old: Option<&Object>) -> Vec<String> {
        Vec::new()
    }
    /// Printer columns, the first being the name.
    fn columns(&self) -> &[Column] {
        &NAME_AND_AGE
    }
    /// One cell per column.
    fn cells(&self, object: &Object, now: Now) -> Vec<Value> {
        vec![object.name().into(), table::age(object, now).into()]
    }
}

/// The columns of Name and Age, with the texts of metav1.ObjectMeta.
pub const NAME_AND_AGE: [Column; 2] = [
    Column {
        name: "Name",
        type_: "string",
        format: "name",
        description: "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
        priority: 0,
    },
    Column {
        name: "Age",
        type_: "string",
        format: "",
        description: "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
        priority: 0,
    },
];

/// A new object's status: there, and empty, as the Go struct is that nobody has written to. A JSON patch of one of its
/// fields finds where to put it.
pub fn reset_status(object: &mut Object) {
    object.0.insert("status".to_owned(), Value::Object(Map::new()));
}

fn keep(new: &mut Object, old: &Object, field: &str) {
    match old.0.get(field) {
        Some(value) => new.0.insert(field.to_owned(), value.clone()),
        None => new.0.remove(field),
    };
}
