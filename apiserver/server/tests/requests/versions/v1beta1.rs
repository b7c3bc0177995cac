//! `v1beta1`: a reference of each type, of which at most one is set.

use drydock_machinery::Object;
use drydock_machinery::field::{Error, ErrorList, Path};
use drydock_machinery::kind::{Column, Names, Now};
use drydock_machinery::metav1::{ObjectMeta, is_default};
use drydock_machinery::schema::ApiType;
use drydock_machinery::schema::common::{API_VERSION_TEXT, KIND_TEXT};
use drydock_machinery::strategy::Strategy;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::v1alpha1::{self, ReferenceType};

/// Flunder refers to another object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "com.example.wardle.v1beta1")]
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
#[schema(package = "com.example.wardle.v1beta1")]
pub struct FlunderSpec {
    /// FlunderReference is the name of another Flunder.
    #[schema(tag = 1)]
    flunder_reference: String,
    /// FischerReference is the name of a Fischer.
    #[schema(tag = 2)]
    fischer_reference: String,
    /// ReferenceType is the type of the reference that is set, if nothing else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 3)]
    reference_type: Option<ReferenceType>,
    /// Tools of the Flunder, by their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 4, list_type = "map", list_map_key = "name", max_items = 16)]
    tools: Vec<Tool>,
}

/// A tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "com.example.wardle.v1beta1")]
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
#[schema(package = "com.example.wardle.v1beta1")]
pub struct FlunderStatus {
    /// Phase of the Flunder.
    #[schema(tag = 1)]
    phase: String,
}

/// The rules of the version.
pub struct FlunderStrategy;

const NAMES: Names = Names { version: "v1beta1", ..v1alpha1::NAMES };

const COLUMNS: [Column; 3] = [
    Column { name: "Name", type_: "string", format: "name", description: "Name.", priority: 0 },
    Column { name: "Flunder", type_: "string", format: "", description: "The Flunder.", priority: 0 },
    Column { name: "Fischer", type_: "string", format: "", description: "The Fischer.", priority: 0 },
];

impl Strategy for FlunderStrategy {
    type Object = Flunder;

    fn names(&self) -> &Names {
        &NAMES
    }

    fn set_defaults(&self, object: &mut Object) {
        let Some(spec) = object.0.get_mut("spec").and_then(|spec| spec.as_object_mut()) else { return };
        for (field, type_) in [("flunderReference", "Flunder"), ("fischerReference", "Fischer")] {
            if spec.get(field).is_some_and(|reference| reference != "") {
                spec.entry("referenceType").or_insert_with(|| type_.into());
            }
        }
    }

    fn validate(&self, new: &Flunder, _now: Now) -> ErrorList {
        let spec = &new.spec;
        let is_fischer = spec.reference_type == Some(ReferenceType::Fischer);
        let (other, field) = match is_fischer {
            true => (&spec.flunder_reference, "flunderReference"),
            false => (&spec.fischer_reference, "fischerReference"),
        };
        if other.is_empty() {
            return ErrorList::new();
        }
        let path = Path::new("spec").child(field);
        vec![Error::invalid(path, other.as_str(), "must not be set for this referenceType")]
    }

    fn selectable_fields(&self) -> &[&'static str] {
        &["spec.flunderReference", "spec.fischerReference"]
    }

    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn cells(&self, flunder: &Flunder, _now: Now) -> Option<Vec<Value>> {
        let spec = &flunder.spec;
        let name = flunder.metadata.name.as_str();
        Some(vec![
            name.into(),
            spec.flunder_reference.as_str().into(),
            spec.fischer_reference.as_str().into(),
        ])
    }
}
