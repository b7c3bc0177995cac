//! Flunder in another version, v1beta1, which has a field for each type of reference. Objects are stored in v1alpha1.

use drydock_machinery::Object;
use drydock_machinery::field::{Error, ErrorList, Path};
use drydock_machinery::kind::{Names, Now};
use drydock_machinery::metav1::{ObjectMeta, is_default};
use drydock_machinery::schema::ApiType;
use drydock_machinery::schema::common::{API_VERSION_TEXT, KIND_TEXT};
use drydock_machinery::strategy::Strategy;
use drydock_machinery::versions::{Conversion, ConversionError, Versions, VersionsError};
use serde::{Deserialize, Serialize};

use crate::v1alpha1::{FlunderStatus, ReferenceType, Tool};

/// Serves this version beside the storage version.
pub fn beside(storage_version: impl Into<Versions>) -> Result<Versions, VersionsError> {
    storage_version.into().with_version(FlunderStrategy.into_kind(), References)
}

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

/// The rules of this version.
pub struct FlunderStrategy;

impl Strategy for FlunderStrategy {
    type Object = Flunder;

    fn names(&self) -> &Names {
        const NAMES: Names =
            Names::namespaced("wardle.example.com", "v1beta1", "Flunder", "flunders", "flunder");
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
        let (spec, path) = (&new.spec, Path::new("spec"));
        let flunder = (&spec.flunder_reference, path.child("flunderReference"));
        let fischer = (&spec.fischer_reference, path.child("fischerReference"));
        let is_fischer = spec.reference_type == Some(ReferenceType::Fischer);
        let (own, other) = if is_fischer { (fischer, flunder) } else { (flunder, fischer) };
        let mut errors = ErrorList::new();
        if spec.reference_type.is_some() && own.0.is_empty() {
            errors.push(Error::required(own.1, "must be set if referenceType is"));
        }
        if !other.0.is_empty() {
            errors.push(Error::invalid(other.1, other.0.as_str(), "must not be set for this referenceType"));
        }
        errors
    }

    fn selectable_fields(&self) -> &[&'static str] {
        &["spec.flunderReference", "spec.fischerReference"]
    }
}

/// Moves the reference to the field of its type, and back.
pub struct References;

impl Conversion for References {
    fn convert_from_storage(&self, object: &mut Object) -> Result<(), ConversionError> {
        let Some(spec) = object.0.get_mut("spec").and_then(|spec| spec.as_object_mut()) else {
            return Ok(());
        };
        if let Some(reference) = spec.remove("reference") {
            let is_fischer = spec.get("referenceType").is_some_and(|type_| type_ == "Fischer");
            let field = if is_fischer { "fischerReference" } else { "flunderReference" };
            spec.insert(field.to_owned(), reference);
        }
        Ok(())
    }

    fn convert_to_storage(&self, object: &mut Object) -> Result<(), ConversionError> {
        let Some(spec) = object.0.get_mut("spec").and_then(|spec| spec.as_object_mut()) else {
            return Ok(());
        };
        let (flunder, fischer) = (spec.remove("flunderReference"), spec.remove("fischerReference"));
        if fischer.as_ref().is_some_and(|reference| reference != "") && flunder.is_none() {
            // Without a type the storage version could not tell it from a Flunder.
            spec.entry("referenceType").or_insert_with(|| "Fischer".into());
        }
        let is_fischer = spec.get("referenceType").is_some_and(|type_| type_ == "Fischer");
        // Validation refuses a reference of the other type.
        if let Some(reference) = if is_fischer { fischer } else { flunder } {
            spec.insert("reference".to_owned(), reference);
        }
        Ok(())
    }
}
