//! One object at one revision: its bytes, made once and shared by all its readers, and the decoded object for as long
//! as it is likely to be asked for.
//!
//! What a cache keeps for long is bytes alone: a decoded object takes several times their memory.

mod splice;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use drydock_machinery::Object;
use drydock_machinery::excerpt::Excerpt;
use parking_lot::Mutex;

use crate::backend::Revision;

/// One object at one revision, encoded at most once per format.
#[derive(Debug)]
pub struct Stored {
    /// Key below the resource's prefix: `namespace/name` or `name`.
    pub key: String,
    /// The object's mod revision.
    pub revision: Revision,
    json: Bytes,
    protobuf: OnceLock<Bytes>,
    decoded: Mutex<Option<Arc<Object>>>,
}

impl Stored {
    /// Sets the object's resourceVersion to `revision`.
    pub fn new(key: String, mut object: Object, revision: Revision) -> Self {
        object.set_resource_version(&revision.0.to_string());
        let json = object.to_json();
        Self::with(key, json, object, revision)
    }

    /// An object that has no revision: what would be stored if this were no dry run.
    pub fn without_revision(key: String, mut object: Object) -> Self {
        object.set_resource_version("");
        let json = object.to_json();
        Self::with(key, json, object, Revision::default())
    }

    /// An object and the bytes that it is stored as, neither of which has a resourceVersion.
    pub(crate) fn of_bytes(key: String, bytes: &[u8], mut object: Object, revision: Revision) -> Self {
        let version = revision.0.to_string();
        object.set_resource_version(&version);
        let json = splice::with_resource_version(bytes, &version).unwrap_or_else(|| object.to_json());
        Self::with(key, json, object, revision)
    }

    fn with(key: String, json: Bytes, object: Object, revision: Revision) -> Self {
        Self { key, revision, json, protobuf: OnceLock::new(), decoded: Mutex::new(Some(Arc::new(object))) }
    }

    /// The same state with another revision, as those see it whose selection it left.
    pub(crate) fn stamped(&self, revision: Revision) -> Self {
        Self::new(self.key.clone(), Object::clone(&self.object()), revision)
    }

    /// The object with its resourceVersion. Decoded anew where [`Self::let_go`] was called before.
    pub fn object(&self) -> Arc<Object> {
        let held = self.decoded.lock().clone();
        // These bytes were decoded before, or encoded here.
        held.unwrap_or_else(|| Arc::new(Object(serde_json::from_slice(&self.json).unwrap_or_default())))
    }

    /// Some fields of the object, of which only they are decoded if it is not decoded already; it may have others.
    pub fn excerpt(&self, excerpt: &Excerpt) -> Arc<Object> {
        let held = self.decoded.lock().clone();
        held.unwrap_or_else(|| Arc::new(excerpt.read(&self.json)))
    }

    /// Keeps the bytes alone.
    pub fn let_go(&self) {
        *self.decoded.lock() = None;
    }

    /// The object as compact JSON, with apiVersion and kind.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The object in the protobuf envelope, made by `encode` on first use.
    pub fn protobuf(&self, encode: impl FnOnce(&Object) -> Bytes) -> &Bytes {
        self.protobuf.get_or_init(|| encode(&self.object()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn object(text: &str) -> Object {
        Object(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn an_object_that_was_let_go_of_is_the_same_when_decoded_again() {
        let bytes = br#"{"apiVersion":"v1","kind":"K","metadata":{"name":"a"},"spec":{"n":1}}"#;
        let of_bytes =
            Stored::of_bytes("a".into(), bytes, object(std::str::from_utf8(bytes).unwrap()), Revision(7));
        let before = of_bytes.object();
        of_bytes.let_go();
        assert_eq!(before, of_bytes.object());
        assert_eq!(before.resource_version(), "7");
    }

    #[test]
    fn bytes_and_object_agree_whichever_came_first() {
        let text = r#"{"data":{"metadata":{}},"metadata":{"name":"a"}}"#;
        let of_bytes = Stored::of_bytes("a".into(), text.as_bytes(), object(text), Revision(7));
        let of_object = Stored::new("a".into(), object(text), Revision(7));
        of_bytes.let_go();
        assert_eq!(of_bytes.object(), of_object.object());
    }
}
