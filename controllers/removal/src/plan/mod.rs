//! What one object still has of Drydock, and the writes that take it back. No I/O: an object in, writes out.

pub(crate) mod node;
pub(crate) mod surge;

use kube::api::{DynamicObject, Preconditions};
use kube::core::ObjectMeta;
use serde_json::{Value, json};

/// What is to be done to an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RemovalPlan {
    /// Nothing: the object has nothing of Drydock.
    Nothing,
    /// The writes that are needed now, the first of them first. What remains is planned again on the object that it leaves.
    Write(Vec<UndoWrite>),
    /// Nothing: the object has something that looks like Drydock's and is not; the text says why.
    Leave(String),
}

/// A write to an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UndoWrite {
    /// What it changes, for people.
    pub(crate) effect: String,
    /// Whether it goes to the status, or to the rest of the object.
    pub(crate) part: ObjectPart,
    /// The patch, with the UID and the resourceVersion of the object that it was planned on.
    pub(crate) patch: Value,
}

/// A part of an object that is written by itself, with the kind of patch that it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectPart {
    /// Metadata and spec, by a merge patch.
    Main,
    /// The status, by a strategic merge patch, which removes items of a list by their keys.
    Status,
}

/// The state of an object on which a write was decided. Neither part is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenVersion {
    uid: String,
    resource_version: String,
}

impl SeenVersion {
    /// The version of an object; none if the host did not say it.
    pub(crate) fn of(meta: &ObjectMeta) -> Option<Self> {
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Some(Self { uid: said(&meta.uid)?, resource_version: said(&meta.resource_version)? })
    }

    /// The UID of the object.
    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    /// The preconditions of a delete.
    pub(crate) fn preconditions(&self) -> Preconditions {
        Preconditions { uid: Some(self.uid.clone()), resource_version: Some(self.resource_version.clone()) }
    }

    /// A patch of the object, which the host refuses when the object has changed since.
    fn patch(&self, mut metadata: Value, rest: Value) -> Value {
        metadata["uid"] = json!(self.uid);
        metadata["resourceVersion"] = json!(self.resource_version);
        let mut patch = rest;
        patch["metadata"] = metadata;
        patch
    }
}

/// Plans with the version of an object, which every write needs.
fn with_version(object: &DynamicObject, plan: impl FnOnce(SeenVersion) -> RemovalPlan) -> RemovalPlan {
    let nameless = || RemovalPlan::Leave("the host names no UID and resourceVersion of it".to_owned());
    SeenVersion::of(&object.metadata).map_or_else(nameless, plan)
}

/// An annotation of an object.
fn annotation<'o>(object: &'o DynamicObject, key: &str) -> Option<&'o str> {
    object.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A forged line left the resourceVersion empty. The host took the patch, whatever the object was by then.
    #[test]
    fn an_object_without_a_version_is_not_written() {
        for meta in [
            json!({}),
            json!({"uid": "", "resourceVersion": ""}),
            json!({"uid": "u", "resourceVersion": ""}),
            json!({"uid": "u"}),
            json!({"uid": "", "resourceVersion": "7"}),
            json!({"resourceVersion": "7"}),
        ] {
            let read: ObjectMeta = serde_json::from_value(meta.clone()).unwrap_or_default();
            assert_eq!(SeenVersion::of(&read), None, "{meta}");
        }
    }

    #[test]
    fn a_patch_and_a_delete_name_the_version() {
        let meta = serde_json::from_value(json!({"uid": "u", "resourceVersion": "7"})).unwrap_or_default();
        let Some(seen) = SeenVersion::of(&meta) else { panic!("no version") };
        let patch = seen.patch(json!({"annotations": {"a": null}}), json!({"spec": {}}));
        let metadata = json!({"uid": "u", "resourceVersion": "7", "annotations": {"a": null}});
        assert_eq!(patch, json!({"metadata": metadata, "spec": {}}));
        let Preconditions { uid, resource_version } = seen.preconditions();
        assert_eq!((uid.as_deref(), resource_version.as_deref()), (Some("u"), Some("7")));
    }
}
