//! The cache in a version that is not stored: all behaviours hold there too.
//!
//! The suite's objects are of `v1`, and are stored as `v1alpha1` with another name of their only field.

use std::sync::Arc;

use drydock_machinery::Object;
use drydock_machinery::kind::{Kind, Names};
use drydock_machinery::schema::{Schema, Shape};
use drydock_machinery::versions::{Conversion, ConversionError, Versions};

use super::{Fixture, on_cache};
use crate::backend::Backend;
use crate::converted::ConvertedStorage;

/// A kind of which only the names count.
struct Widget(Names, Schema);

impl Kind for Widget {
    fn names(&self) -> &Names {
        &self.0
    }
    fn schema(&self) -> &Schema {
        &self.1
    }
}

fn widget(version: &'static str) -> Arc<dyn Kind> {
    let names = Names {
        group: "test.example",
        version,
        kind: "Widget",
        plural: "widgets",
        singular: "widget",
        short_names: &[],
        categories: &[],
        namespaced: true,
    };
    Arc::new(Widget(names, Schema::new("Anything.", Shape::Raw)))
}

/// `spec.value` is stored as `spec.number`.
struct Renaming;

fn rename(object: &mut Object, from: &str, to: &str) -> Result<(), ConversionError> {
    let spec = object.0.get_mut("spec").and_then(|spec| spec.as_object_mut());
    let spec = spec.ok_or_else(|| ConversionError::new("spec is absent"))?;
    let value = spec.remove(from).ok_or_else(|| ConversionError::new(format!("spec.{from} is absent")))?;
    spec.insert(to.to_owned(), value);
    Ok(())
}

impl Conversion for Renaming {
    fn convert_from_storage(&self, object: &mut Object) -> Result<(), ConversionError> {
        rename(object, "number", "value")
    }
    fn convert_to_storage(&self, object: &mut Object) -> Result<(), ConversionError> {
        rename(object, "value", "number")
    }
}

/// Another version over the cache.
pub async fn on_other_version(backend: Arc<dyn Backend>) -> Fixture {
    let Fixture { storage, backend } = on_cache(backend).await;
    let served = widget("v1");
    let versions = Versions::new(widget("v1alpha1")).with_version(served.clone(), Renaming);
    let versions = Arc::new(versions.expect("versions of one kind"));
    Fixture { storage: Arc::new(ConvertedStorage::new(storage, versions, &*served)), backend }
}
