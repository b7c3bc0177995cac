//! The conversion between the two versions.

use drydock_machinery::Object;
use drydock_machinery::versions::{Conversion, ConversionError};
use serde_json::{Map, Value};

/// Holds `spec.note` of `v1alpha1`, which `v1beta1` does not have. It is reserved for this.
pub const NOTE: &str = "wardle.example.com/v1alpha1-note";

/// Moves the reference to the field of its type and back, and the note to an annotation and back.
pub struct References;

impl Conversion for References {
    fn convert_from_storage(&self, object: &mut Object) -> Result<(), ConversionError> {
        let Some(spec) = spec(object) else { return Ok(()) };
        if let Some(reference) = spec.remove("reference") {
            if reference == "unreadable" {
                return Err(ConversionError::new("spec.reference: there is no such reference"));
            }
            let field = field(spec);
            spec.insert(field.to_owned(), reference);
        }
        if let Some(note) = spec.remove("note") {
            let annotations = object.meta_mut().entry("annotations").or_insert_with(|| Map::new().into());
            if let Value::Object(annotations) = annotations {
                annotations.insert(NOTE.to_owned(), note);
            }
        }
        Ok(())
    }

    fn convert_to_storage(&self, object: &mut Object) -> Result<(), ConversionError> {
        let note = take_note(object);
        let Some(spec) = spec(object) else { return Ok(()) };
        if spec.contains_key("fischerReference") && !spec.contains_key("flunderReference") {
            // Without a type the storage version could not tell it from a Flunder.
            spec.entry("referenceType").or_insert_with(|| "Fischer".into());
        }
        let reference = spec.remove(field(spec));
        // The reference of the other type, which validation refuses, is dropped.
        spec.retain(|field, _| !matches!(&**field, "flunderReference" | "fischerReference"));
        if let Some(reference) = reference {
            if reference == "unconvertible" {
                return Err(ConversionError::new("spec: there is no such reference"));
            }
            spec.insert("reference".to_owned(), reference);
        }
        if let Some(note) = note {
            spec.insert("note".to_owned(), note);
        }
        Ok(())
    }
}

fn spec(object: &mut Object) -> Option<&mut Map<String, Value>> {
    object.0.get_mut("spec").and_then(Value::as_object_mut)
}

/// The field of `v1beta1` for a reference of the spec's type.
fn field(spec: &Map<String, Value>) -> &'static str {
    match spec.get("referenceType").and_then(Value::as_str) {
        Some("Fischer") => "fischerReference",
        _ => "flunderReference",
    }
}

fn take_note(object: &mut Object) -> Option<Value> {
    let annotations = object.meta()?.get("annotations")?.as_object()?;
    if !annotations.contains_key(NOTE) {
        return None;
    }
    let mut annotations = annotations.clone();
    let note = annotations.remove(NOTE);
    object.set_meta("annotations", (!annotations.is_empty()).then(|| annotations.into()));
    note
}
