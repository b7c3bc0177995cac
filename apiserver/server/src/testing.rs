//! A kind for this crate's own tests, and large objects of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use drydock_machinery::Object;
use drydock_machinery::field::ErrorList;
use drydock_machinery::kind::{Column, Kind, Names, Now};
use drydock_machinery::schema::common::{meta_schema, optional};
use drydock_machinery::schema::{ObjectShape, Schema, Shape};
use drydock_storage::backend::Revision;
use drydock_storage::storage::Stored;
use drydock_storage::work_meter::STEP;
use serde_json::{Value, json};

/// Approximate bytes of an object: four objects make a step.
const BYTES: usize = STEP / 4;

/// A kind that counts how often an object is encoded.
pub(crate) struct Counting {
    names: Names,
    schema: Schema,
    pub(crate) encoded: AtomicUsize,
}

/// The kind.
pub(crate) fn kind() -> Arc<Counting> {
    let fields = vec![optional("metadata", 1, meta_schema())];
    let schema = Shape::Object(ObjectShape { definition: "test.Thing", fields, ..ObjectShape::default() });
    let (group, version, kind, plural) = ("g", "v1", "Thing", "things");
    let names = Names {
        group,
        version,
        kind,
        plural,
        singular: "thing",
        short_names: &[],
        categories: &[],
        namespaced: true,
    };
    Arc::new(Counting { names, schema: Schema::new("A thing.", schema), encoded: AtomicUsize::new(0) })
}

impl Kind for Counting {
    fn names(&self) -> &Names {
        &self.names
    }
    fn schema(&self) -> &Schema {
        self.encoded.fetch_add(1, Relaxed);
        &self.schema
    }
    fn set_defaults(&self, _: &mut Object) {}
    fn prepare_for_create(&self, _: &mut Object) {}
    fn validate_create(&self, _: &Object, _: Now) -> ErrorList {
        ErrorList::new()
    }
    fn prepare_for_update(&self, _: &mut Object, _: &Object) {}
    fn validate_update(&self, _: &Object, _: &Object, _: Now) -> ErrorList {
        ErrorList::new()
    }
    fn prepare_for_status_update(&self, _: &mut Object, _: &Object) {}
    fn validate_status_update(&self, _: &Object, _: &Object, _: Now) -> ErrorList {
        ErrorList::new()
    }
    fn columns(&self) -> &[Column] {
        &[]
    }
    fn cells(&self, object: &Object, now: Now) -> Vec<Value> {
        self.encoded.fetch_add(1, Relaxed);
        vec![object.name().into(), now.as_second().into()]
    }
}

/// Returns `count` of its objects, of about [`BYTES`] each.
pub(crate) fn objects(count: usize) -> Vec<Arc<Stored>> {
    let object = |number: usize| {
        let metadata =
            json!({"name": format!("n{number}"), "annotations": {"a": format!("{number}").repeat(BYTES)}});
        let Value::Object(fields) = json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": metadata})
        else {
            panic!("an object");
        };
        Arc::new(Stored::new(format!("a/n{number}"), Object::from(fields), Revision(7)))
    };
    (0..count).map(|number| object(number % 10)).collect()
}
