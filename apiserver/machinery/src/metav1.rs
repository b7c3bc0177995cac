//! The types of metav1 as Rust structs, for the structs of kinds: object metadata, conditions, label selectors.

pub mod time;
pub mod validation;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use crate::object::{FieldsV1, ManagedFieldsEntry};
use crate::schema::common::{SELECTOR_ITEMS_MAX, SELECTOR_VALUES_MAX, meta_schema};
use crate::schema::{ApiType, Schema};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// metav1.ObjectMeta, without `selfLink`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Unique in the namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Prefix of a name that the server generates.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    /// Empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Unique over the whole lifetime of the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Opaque version, for preconditions and watches.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Increased by each change of the spec.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// When the object was created.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
    /// When deletion was requested. The object exists while it has finalizers.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Grace period of the deletion, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Label selectors match these. Objects may share them, as they may annotations and managed fields.
    #[serde(skip_serializing_if = "is_empty_map")]
    pub labels: Arc<BTreeMap<String, String>>,
    /// Not used for selection; for tools.
    #[serde(skip_serializing_if = "is_empty_map")]
    pub annotations: Arc<BTreeMap<String, String>>,
    /// Components that must finish before the object is removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// The owners of the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    /// Which manager set which field, as FieldsV1.
    #[serde(skip_serializing_if = "is_empty_list")]
    pub managed_fields: Arc<[ManagedFieldsEntry]>,
    /// Bytes of JSON that a cache has dropped from the metadata, so that the size of the stored object is still known.
    #[serde(skip)]
    pub trimmed_bytes: usize,
    /// The first key, in their order, of the labels that a cache has dropped.
    #[serde(skip)]
    pub labels_cut_from: Option<Box<str>>,
}

impl ObjectMeta {
    /// The labels, and from where on there may be others.
    pub fn known_labels(&self) -> KnownLabels<'_> {
        KnownLabels { cut_from: self.labels_cut_from.as_deref(), ..KnownLabels::from(&*self.labels) }
    }
}

impl ApiType for ObjectMeta {
    fn schema() -> Schema {
        meta_schema()
    }
}

/// metav1.OwnerReference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.apimachinery.pkg.apis.meta.v1", struct_type = "atomic")]
pub struct OwnerReference {
    /// `group/version` of the owner.
    #[schema(tag = 5, required)]
    pub api_version: String,
    /// Kind of the owner.
    #[schema(tag = 1, required)]
    pub kind: String,
    /// Name of the owner.
    #[schema(tag = 3, required)]
    pub name: String,
    /// UID of the owner.
    #[schema(tag = 4, required)]
    pub uid: String,
    /// Whether the owner is the managing controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 6)]
    pub controller: Option<bool>,
    /// Whether a foreground deletion of the owner waits until the object is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 7)]
    pub block_owner_deletion: Option<bool>,
}

/// metav1.Condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.apimachinery.pkg.apis.meta.v1")]
pub struct Condition {
    /// Type of the condition; unique in its list.
    #[serde(rename = "type")]
    #[schema(tag = 1, required)]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[schema(tag = 2, required)]
    pub status: String,
    /// Generation that the condition was computed from.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(tag = 3, value)]
    pub observed_generation: i64,
    /// When `status` last changed.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    #[schema(tag = 4, required)]
    pub last_transition_time: Option<Timestamp>,
    /// The cause, in CamelCase.
    #[schema(tag = 5, required)]
    pub reason: String,
    /// For people.
    #[schema(tag = 6, required)]
    pub message: String,
}

impl Condition {
    /// Whether `status` is `True`.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}

/// Returns the condition of this type.
pub fn find_condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

/// Whether the condition of this type exists and is `True`.
pub fn is_condition_true(conditions: &[Condition], type_: &str) -> bool {
    find_condition(conditions, type_).is_some_and(Condition::is_true)
}

/// Sets the condition of this type. Keeps `lastTransitionTime` if the status does not change. Returns whether
/// anything changed (k8s.io/apimachinery/pkg/api/meta.SetStatusCondition).
pub fn set_condition(conditions: &mut Vec<Condition>, mut new: Condition) -> bool {
    let Some(old) = conditions.iter_mut().find(|c| c.type_ == new.type_) else {
        conditions.push(new);
        return true;
    };
    if old.status == new.status && old.last_transition_time.is_some() {
        new.last_transition_time = old.last_transition_time;
    }
    let changed = *old != new;
    *old = new;
    changed
}

/// metav1.LabelSelector.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.apimachinery.pkg.apis.meta.v1", struct_type = "atomic")]
pub struct LabelSelector {
    /// Each label must have this value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(tag = 1)]
    pub match_labels: BTreeMap<String, String>,
    /// Each requirement must be met.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 2, max_items = SELECTOR_ITEMS_MAX)]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// metav1.LabelSelectorRequirement.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.apimachinery.pkg.apis.meta.v1")]
pub struct LabelSelectorRequirement {
    /// Label key.
    #[schema(tag = 1, required)]
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[schema(tag = 2, required)]
    pub operator: String,
    /// Values of `In` and `NotIn`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 3, max_items = SELECTOR_VALUES_MAX)]
    pub values: Vec<String>,
}

/// The labels of an object, of which a cache may have left some out.
#[derive(Clone, Copy, Debug)]
pub struct KnownLabels<'a> {
    /// Those that are known.
    pub labels: &'a BTreeMap<String, String>,
    /// The key from which on, in the order of keys, there may be others. None if all labels are known.
    pub cut_from: Option<&'a str>,
    /// Whether a label with a key is known whatever was left out.
    pub is_always_known: fn(&str) -> bool,
}

impl<'a> From<&'a BTreeMap<String, String>> for KnownLabels<'a> {
    fn from(labels: &'a BTreeMap<String, String>) -> Self {
        Self { labels, cut_from: None, is_always_known: |_| false }
    }
}

impl KnownLabels<'_> {
    /// Whether the object may have a label with this key that is not known.
    pub fn may_hide(&self, key: &str) -> bool {
        self.cut_from.is_some_and(|from| key >= from)
            && !self.labels.contains_key(key)
            && !(self.is_always_known)(key)
    }

    /// Whether all of some requirements are met: each is a key and what the known labels say of it. None if that depends on a
    /// label that is not known.
    pub fn meet<'k>(&self, requirements: impl IntoIterator<Item = (&'k str, bool)>) -> Option<bool> {
        let mut all = Some(true);
        for (key, is_met) in requirements {
            if self.may_hide(key) {
                all = None;
            } else if !is_met {
                return Some(false);
            }
        }
        all
    }
}

impl LabelSelector {
    /// Whether it selects an object of which these labels are known. None if that depends on a label that is not known.
    pub fn matches_known(&self, known: KnownLabels<'_>) -> Option<bool> {
        let KnownLabels { labels, .. } = known;
        let pairs =
            self.match_labels.iter().map(|(key, value)| (key.as_str(), labels.get(key) == Some(value)));
        let expressions = self.match_expressions.iter().map(|it| (it.key.as_str(), it.matches(labels)));
        known.meet(pairs.chain(expressions))
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether it selects an object with these labels. A requirement with an unknown operator matches nothing.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_known(labels.into()) == Some(true)
    }

    /// Returns a normal form, which is equal for selectors that have the same requirements: `matchLabels` become `In`
    /// expressions; expressions and values are sorted and have no duplicates.
    #[must_use]
    pub fn normalized(&self) -> Self {
        let labels = self.match_labels.iter().map(|(key, value)| LabelSelectorRequirement {
            key: key.clone(),
            operator: "In".to_owned(),
            values: vec![value.clone()],
        });
        let mut all: Vec<_> = labels.chain(self.match_expressions.iter().cloned()).collect();
        for requirement in &mut all {
            requirement.values.sort();
            requirement.values.dedup();
        }
        all.sort();
        all.dedup();
        Self { match_labels: BTreeMap::new(), match_expressions: all }
    }

    /// Whether this selector selects everything that `narrow` selects, as far as their requirements prove it.
    pub fn includes(&self, narrow: &Self) -> bool {
        let required = narrow.normalized().match_expressions;
        self == narrow || self.normalized().match_expressions.iter().all(|r| required.contains(r))
    }
}

impl LabelSelectorRequirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator.as_str() {
            "In" => value.is_some_and(|v| self.values.contains(v)),
            "NotIn" => value.is_none_or(|v| !self.values.contains(v)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

/// Whether a number is 0; for `skip_serializing_if`.
pub fn is_zero(n: &i64) -> bool {
    *n == 0
}

fn is_empty_map(map: &Arc<BTreeMap<String, String>>) -> bool {
    map.is_empty()
}

fn is_empty_list(list: &Arc<[ManagedFieldsEntry]>) -> bool {
    list.is_empty()
}

/// Whether a value is its type's default; for `skip_serializing_if`.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
