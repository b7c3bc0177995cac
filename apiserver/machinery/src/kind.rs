//! A kind: names, schema and strategy (Kubernetes: registry/rest strategies). All of it pure.

use serde_json::Value;

use crate::field::ErrorList;
use crate::object::Object;
use crate::schema::Schema;

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

/// The moment of a request, injected (UTC).
pub type Now = jiff::Timestamp;

/// A kind's strategy. Methods named `validate_*` do not change the object and return every error.
pub trait Kind: Send + Sync + 'static {
    /// Names and scope.
    fn names(&self) -> &Names;
    /// Schema of the whole object (`apiVersion`, `kind`, `metadata`, ...).
    fn schema(&self) -> &Schema;
    /// Fills in defaults; runs after decoding, before admission, and before managed fields are tracked.
    fn default(&self, object: &mut Object);
    /// Before a create is validated: drops what a client may not set (status).
    fn prepare_for_create(&self, object: &mut Object);
    /// Errors of a new object, beyond those of its metadata.
    fn validate_create(&self, object: &Object, now: Now) -> ErrorList;
    /// Before a main-resource update is validated: keeps the old status and the like.
    fn prepare_for_update(&self, new: &mut Object, old: &Object);
    /// Errors of a main-resource update, beyond those of its metadata.
    fn validate_update(&self, new: &Object, old: &Object, now: Now) -> ErrorList;
    /// Before a status update is validated: keeps the old spec (metadata is reset by the server).
    fn prepare_for_status_update(&self, new: &mut Object, old: &Object);
    /// Errors of a status update.
    fn validate_status_update(&self, new: &Object, old: &Object, now: Now) -> ErrorList;
    /// A last word before an object that is to be deleted is marked (`deletionTimestamp` set, finalizers pending).
    fn prepare_for_delete(&self, _object: &mut Object) {}
    /// Rules on the name beyond those of every object; `generateName` may be refused.
    fn allows_generate_name(&self) -> bool {
        true
    }
    /// Whether an update without resourceVersion is taken.
    fn allows_unconditional_update(&self) -> bool {
        true
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
    fn columns(&self) -> &[Column];
    /// One cell per column.
    fn cells(&self, object: &Object, now: Now) -> Vec<Value>;
}
