//! `v1alpha1`, the storage version: one reference, of the type that `referenceType` says.

use drydock_machinery::Object;
use drydock_machinery::kind::Names;
use drydock_machinery::metav1::{ObjectMeta, is_default};
use drydock_machinery::schema::ApiType;
use drydock_machinery::schema::common::{API_VERSION_TEXT, KIND_TEXT};
use drydock_machinery::strategy::Strategy;
use serde::{Deserialize, Serialize};

/// Flunder refers to another object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "com.example.wardle.v1alpha1")]
pub struct Flunder {
    #[schema(tag = 0, text = API_VERSION_TEXT)]
    api_version: String,
    #[schema(tag = 0, text = KIND_TEXT)]
    kind: String,
    /// Metadata of the Flunder.
    #[schema(tag = 1, always)]
    metadata: ObjectMeta,
    /// Spec of the Flunder.
    #[schema(tag = 2, always)]
    spec: FlunderSpec,
    /// Status of the Flunder.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(tag = 3, always)]
    status: FlunderStatus,
}

/// What a Flunder refers to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "com.example.wardle.v1alpha1")]
pub struct FlunderSpec {
    /// Reference is the name of another Flunder or Fischer, depending on the reference type.
    #[schema(tag = 1)]
    reference: String,
    /// ReferenceType is Flunder if reference is set and nothing else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 2)]
    reference_type: Option<ReferenceType>,
    /// Note is a remark. Later versions do not have it.
    #[schema(tag = 3)]
    note: String,
    /// Tools of the Flunder, by their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 4, list_type = "map", list_map_key = "name", max_items = 16)]
    tools: Vec<Tool>,
}

/// The kinds that a Flunder may refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ApiType)]
pub enum ReferenceType {
    #[default]
    Flunder,
    Fischer,
    #[serde(other)]
    Unknown,
}

/// A tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "com.example.wardle.v1alpha1")]
pub struct Tool {
    /// Name of the tool.
    #[schema(tag = 1, required)]
    name: String,
    /// Count says how many there are.
    #[schema(tag = 2, default = "1")]
    count: i32,
}

/// What is known of a Flunder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "com.example.wardle.v1alpha1")]
pub struct FlunderStatus {
    /// Phase of the Flunder.
    #[schema(tag = 1)]
    phase: String,
}

/// The rules of the version.
pub struct FlunderStrategy;

pub const NAMES: Names = Names {
    group: "wardle.example.com",
    version: "v1alpha1",
    kind: "Flunder",
    plural: "flunders",
    singular: "flunder",
    short_names: &["fl"],
    categories: &[],
    namespaced: true,
};

impl Strategy for FlunderStrategy {
    type Object = Flunder;

    fn names(&self) -> &Names {
        &NAMES
    }

    fn set_defaults(&self, object: &mut Object) {
        let Some(spec) = object.0.get_mut("spec").and_then(|spec| spec.as_object_mut()) else { return };
        if spec.get("reference").is_some_and(|reference| reference != "") {
            spec.entry("referenceType").or_insert_with(|| "Flunder".into());
        }
    }

    fn selectable_fields(&self) -> &[&'static str] {
        &["spec.reference"]
    }
}
