//! A kind: names, schema and strategy (Kubernetes: registry/rest strategies). All methods are pure.

use serde_json::{Map, Value};

use crate::field::ErrorList;
use crate::names::{self, NameRule};
use crate::object::Object;
use crate::schema::Schema;
use crate::table;

/// The names of a kind in discovery.
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
    /// Names without short names and categories, of a kind whose objects live in namespaces.
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        singular: &'static str,
    ) -> Self {
        Self { group, version, kind, plural, singular, short_names: &[], categories: &[], namespaced: true }
    }

    /// `group/version`
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

/// A printer column (metav1.TableColumnDefinition).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in the header.
    pub name: &'static str,
    /// OpenAPI type: `string`, `integer`, `date`.
    pub type_: &'static str,
    /// OpenAPI format; `name` marks the identifying column.
    pub format: &'static str,
    /// Description of the column.
    pub description: &'static str,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: i32,
}

/// Limits on the objects of a kind in a namespace, like a ResourceQuota: on the number of objects in a state that
/// their authors can cause at will, and on the bytes of all objects.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// The name of the limit in an error.
    pub name: &'static str,
    /// Maximum number of counted objects of a namespace.
    pub hard: usize,
    /// Dotted paths of the fields that `counts` reads.
    pub reads: &'static [&'static str],
    /// Returns whether an object counts. The object has at least the fields in `reads`.
    pub counts: fn(&Object) -> bool,
    /// The remedy that an error suggests.
    pub remedy: &'static str,
    /// The limit on the bytes of all objects of a namespace.
    pub bytes: BytesQuota,
}

/// The limit of a [`Quota`] on bytes.
#[derive(Clone, Copy, Debug)]
pub struct BytesQuota {
    /// The name of the limit in an error.
    pub name: &'static str,
    /// Bytes at which further objects are refused; requests in flight may exceed it by what they add.
    pub hard: u64,
    /// Whether the status counts too, with its managed fields. If not, a write to the status is never refused: only controllers
    /// may write it, and they bound it.
    pub counts_status: bool,
    /// The remedy that an error suggests.
    pub remedy: &'static str,
}

/// The time of a request, passed in (UTC).
pub type Now = jiff::Timestamp;

/// A kind as the server sees it, whatever its Rust struct: [`Strategy`](crate::strategy::Strategy) is what the author of
/// a kind implements, and has each of these decisions. By hand it is for kinds without a struct, whose schema is data.
/// The default methods fit any simple kind with `spec` and `status`. Methods named `validate_*` do not change the object
/// and return all errors.
pub trait Kind: Send + Sync + 'static {
    /// Returns names and scope.
    fn names(&self) -> &Names;
    /// Returns the schema of the whole object (`apiVersion`, `kind`, `metadata`, ...).
    fn schema(&self) -> &Schema;
    /// Fills in defaults; runs after decoding, before admission, and before managed fields are tracked.
    fn set_defaults(&self, _object: &mut Object) {}
    /// Called before a create (`old` is `None`) or an update of the main resource is prepared and validated: sets the fields
    /// that say who has written what, whatever the client sent in them.
    fn record_user(&self, _new: &mut Object, _old: Option<&Object>, _username: &str) {}
    /// Returns dotted paths to the fields that only [`Self::record_user`] and [`Self::note_creator`] write. No manager becomes
    /// the owner of one, or has a conflict about it (Kubernetes: GetResetFields), and they do not count for
    /// [`Self::max_bytes_without_status`].
    fn recorded_fields(&self) -> &[&'static str] {
        &[]
    }
    /// Called before a create is validated: resets the fields that a client may not set (status).
    fn prepare_for_create(&self, object: &mut Object) {
        if self.has_status() {
            reset_status(object);
        }
    }
    /// Returns the errors of a new object, except those of its metadata.
    fn validate_create(&self, _object: &Object, _now: Now) -> ErrorList {
        ErrorList::new()
    }
    /// Called before an update of the main resource is validated: restores the old status and the like.
    fn prepare_for_update(&self, new: &mut Object, old: &Object) {
        keep(new, old, "status");
    }
    /// Returns the errors of an update of the main resource, except those of its metadata.
    fn validate_update(&self, new: &Object, _old: &Object, now: Now) -> ErrorList {
        self.validate_create(new, now)
    }
    /// Called before a status update is validated: restores everything but the status (the server resets the
    /// metadata).
    fn prepare_for_status_update(&self, new: &mut Object, old: &Object) {
        keep_all_but_status(new, old);
    }
    /// Returns the errors of a status update.
    fn validate_status_update(&self, _new: &Object, _old: &Object, _now: Now) -> ErrorList {
        ErrorList::new()
    }
    /// Prepares and validates a new object (k8s.io/apiserver pkg/registry/rest, BeforeCreate).
    fn before_create(&self, object: &mut Object, now: Now) -> ErrorList {
        self.prepare_for_create(object);
        self.validate_create(object, now)
    }
    /// Prepares and validates an update of the main resource (k8s.io/apiserver pkg/registry/rest, BeforeUpdate).
    fn before_update(&self, new: &mut Object, old: &Object, now: Now) -> ErrorList {
        self.prepare_for_update(new, old);
        self.validate_update(new, old, now)
    }
    /// Prepares and validates an update of the status.
    fn before_status_update(&self, new: &mut Object, old: &Object, now: Now) -> ErrorList {
        self.prepare_for_status_update(new, old);
        self.validate_status_update(new, old, now)
    }
    /// Notes in a new object who creates it, if the kind keeps that. `creator` is the unit by which users have shares: the name of
    /// a user, or the group of all service accounts of a namespace.
    fn note_creator(&self, _object: &mut Object, _creator: &str) {}
    /// Called before an object is marked for deletion (`deletionTimestamp` set, finalizers pending).
    fn prepare_for_delete(&self, _object: &mut Object) {}
    /// Returns the rule for names, in addition to that of every object.
    fn name_rule(&self) -> NameRule {
        names::name_is_dns_subdomain
    }
    /// Whether names may be generated from `generateName`.
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
    /// Whether an update of an object that does not exist creates it.
    fn allows_create_on_update(&self) -> bool {
        false
    }
    /// Whether an update without resourceVersion is accepted.
    fn allows_unconditional_update(&self) -> bool {
        true
    }
    /// Maximum number of bytes of JSON that an object may have without its status, including managed fields, after a
    /// write to the main resource. A write that makes a larger object smaller is accepted, and writes to the status
    /// are not checked: the status has limits of its own.
    fn max_bytes_without_status(&self) -> Option<usize> {
        None
    }
    /// Returns the quota of a namespace; creates beyond it are refused.
    fn quota(&self) -> Option<Quota> {
        None
    }
    /// Whether a write to the status has to succeed although its namespace or the store is full, because it makes the
    /// status larger only by a few KiB that its writer is owed. Any other write to the status that makes the object
    /// larger is refused there, unless a component of the cluster makes it.
    fn is_needed_status(&self, _new: &Object, _old: &Object) -> bool {
        false
    }
    /// Whether a write to the main resource has to succeed although its namespace or the store is full, because it makes the
    /// object larger by a few bytes only, and cannot be repeated without end.
    fn is_needed_update(&self, _new: &Object, _old: &Object) -> bool {
        false
    }
    /// Maximum number of bytes of managed fields that writes to the status may leave in an object. Beyond it a write to
    /// the status leaves the managed fields as they were.
    fn max_bytes_of_status_managers(&self) -> Option<usize> {
        None
    }
    /// Returns dotted paths to strings that field selectors may use, besides `metadata.name` and
    /// `metadata.namespace`.
    fn selectable_fields(&self) -> &[&'static str] {
        &[]
    }
    /// Returns warnings for the client.
    fn warnings(&self, _new: &Object, _old: Option<&Object>) -> Vec<String> {
        Vec::new()
    }
    /// Returns the printer columns; the first one is the name.
    fn columns(&self) -> &[Column] {
        &NAME_AND_AGE
    }
    /// Returns the cells of an object, one for each column.
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

/// Sets the status of a new object to an empty object, as an unset Go struct is written. A JSON patch of one of its
/// fields then finds the parent.
pub fn reset_status(object: &mut Object) {
    object.0.insert("status".to_owned(), Value::Object(Map::new()));
}

/// Sets all fields but the status and the metadata to their values in the old object.
pub(crate) fn keep_all_but_status(new: &mut Object, old: &Object) {
    const OWN: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
    let is_own = |field: &str| OWN.contains(&field);
    new.0.retain(|field, _| is_own(field) || old.0.contains_key(field));
    for field in old.0.keys().filter(|field| !is_own(field)) {
        keep(new, old, field);
    }
}

/// Sets a top-level field to its value in the old object, or removes it if it is absent there.
pub(crate) fn keep(new: &mut Object, old: &Object, field: &str) {
    match old.0.get(field) {
        // Most clients send the fields that they may not change unchanged.
        same if same == new.0.get(field) => None,
        Some(value) => new.0.insert(field.to_owned(), value.clone()),
        None => new.0.remove(field),
    };
}
