//! One object at one revision, shared by all its readers.
//!
//! ```text
//!   written, or read from a watch ──> fresh: JSON; on first use, also the decoded object and its protobuf
//!                                       │ pack
//!                                       ▼
//!                                     packed: only compressed JSON; each reader decodes or encodes the rest
//! ```
//!
//! A cache packs all but its newest objects, because a decoded object takes several times the memory of its JSON. The
//! object that a writer passes in is not kept: the thread that allocated it can free it soonest, and most readers
//! need JSON.

mod interner;
mod packed;
mod splice;

use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use drydock_machinery::Object;
use drydock_machinery::field_mask::FieldMask;
use parking_lot::Mutex;

use crate::backend::Revision;
pub(crate) use interner::Interner;
use packed::Packed;

/// One object at one revision.
#[derive(Debug)]
pub struct Stored {
    /// Key below the resource's prefix: `namespace/name` or `name`.
    pub key: Box<str>,
    /// The object's mod revision.
    pub revision: Revision,
    /// Set once, and then read without a lock.
    packed: OnceLock<Packed>,
    /// `None` once the object is packed.
    fresh: Mutex<Option<Box<Fresh>>>,
}

#[derive(Debug)]
struct Fresh {
    json: Bytes,
    protobuf: Option<Bytes>,
    decoded: Option<Arc<Object>>,
}

impl Stored {
    /// Encodes the object with `revision` as its resourceVersion.
    pub fn new(key: String, mut object: Object, revision: Revision) -> Self {
        object.set_resource_version(&revision.0.to_string());
        Self::with(&key, object.to_json(), revision)
    }

    /// Encodes an object without a revision: the result of a dry run.
    pub fn without_revision(key: String, mut object: Object) -> Self {
        object.set_resource_version("");
        Self::with(&key, object.to_json(), Revision::default())
    }

    /// Returns the object that is stored as `bytes`. They have no resourceVersion, and must be decodable.
    pub(crate) fn of_bytes(key: &str, bytes: &[u8], revision: Revision) -> Self {
        match splice::with_resource_version(bytes, &revision.0.to_string()) {
            Some(json) => Self::with(key, json, revision),
            None => Self::new(key.to_owned(), decoded(bytes), revision),
        }
    }

    fn with(key: &str, json: Bytes, revision: Revision) -> Self {
        let fresh = Fresh { json, protobuf: None, decoded: None };
        Self { key: key.into(), revision, packed: OnceLock::new(), fresh: Mutex::new(Some(Box::new(fresh))) }
    }

    /// Returns the same state with another revision, for watchers whose selection it left.
    pub(crate) fn stamped(&self, revision: Revision) -> Self {
        Self::new(self.key.to_string(), Object::clone(&self.object()), revision)
    }

    /// Returns the object with its resourceVersion. A fresh object is decoded once and kept, a packed one is decoded
    /// for each call.
    pub fn object(&self) -> Arc<Object> {
        self.known().unwrap_or_else(|| {
            let object = self.object_not_kept();
            if let Some(fresh) = self.fresh.lock().as_mut() {
                fresh.decoded = Some(object.clone());
            }
            object
        })
    }

    /// As [`Self::object`], but does not keep a decoded object: for readers of many objects that need each of them
    /// only once.
    pub fn object_not_kept(&self) -> Arc<Object> {
        self.known().unwrap_or_else(|| Arc::new(decoded(&self.json())))
    }

    /// Returns the object with at least the fields of `mask`. If it is not decoded yet, only those are decoded.
    pub fn with_fields(&self, mask: &FieldMask) -> Arc<Object> {
        self.known().unwrap_or_else(|| Arc::new(mask.read(&self.json())))
    }

    fn known(&self) -> Option<Arc<Object>> {
        if self.packed.get().is_some() {
            return None;
        }
        self.fresh.lock().as_ref()?.decoded.clone()
    }

    /// Packs the JSON, sharing text with similar objects, and frees everything else.
    pub(crate) fn pack(&self, interner: &Interner) {
        let Some(json) = self.unpacked() else { return };
        self.packed.get_or_init(|| Packed::of(&json, interner));
        // Dropped without the lock.
        let _fresh = self.fresh.lock().take();
    }

    /// Returns the JSON, unless it is packed.
    fn unpacked(&self) -> Option<Bytes> {
        if self.packed.get().is_some() {
            return None;
        }
        self.fresh.lock().as_ref().map(|fresh| fresh.json.clone())
    }

    /// Returns the object as compact JSON, with apiVersion and kind.
    pub fn json(&self) -> Bytes {
        self.unpacked().unwrap_or_else(|| {
            let mut out = BytesMut::with_capacity(self.packed.get().map_or(0, Packed::len));
            self.write_json(&mut out);
            out.freeze()
        })
    }

    /// Returns whether [`Self::of_bytes`] makes this object of `bytes`, without decoding.
    pub(crate) fn is_of_bytes(&self, bytes: &[u8]) -> bool {
        splice::is_with_resource_version(&self.json(), bytes, &self.revision.0.to_string())
    }

    /// Returns the length of the compact JSON in bytes.
    pub fn json_len(&self) -> usize {
        self.packed.get().map_or_else(|| self.unpacked().map_or(0, |json| json.len()), Packed::len)
    }

    /// Appends the object as compact JSON.
    pub fn write_json(&self, out: &mut BytesMut) {
        match (self.unpacked(), self.packed.get()) {
            (Some(json), _) => out.put_slice(&json),
            (None, Some(packed)) => packed.write(out),
            (None, None) => {}
        }
    }

    /// Appends the object's compact JSON without its prefix `head`. Returns `false`, and appends nothing, if the JSON
    /// does not begin with `head`.
    pub fn write_without_prefix(&self, head: &[u8], out: &mut BytesMut) -> bool {
        match (self.unpacked(), self.packed.get()) {
            (Some(json), _) => json.strip_prefix(head).map(|rest| out.put_slice(rest)).is_some(),
            (None, Some(packed)) => packed.write_without_prefix(head, out),
            (None, None) => false,
        }
    }

    /// Returns the object in the protobuf envelope, which `encode` makes: once for a fresh object, which keeps it,
    /// and for each call for a packed one.
    pub fn protobuf(&self, encode: impl FnOnce(&Object) -> Bytes) -> Bytes {
        self.known_protobuf().unwrap_or_else(|| {
            let made = encode(&self.object());
            if let Some(fresh) = self.fresh.lock().as_mut() {
                fresh.protobuf = Some(made.clone());
            }
            made
        })
    }

    /// As [`Self::protobuf`], but keeps nothing that it makes: for readers of many objects.
    pub fn protobuf_not_kept(&self, encode: impl FnOnce(&Object) -> Bytes) -> Bytes {
        self.known_protobuf().unwrap_or_else(|| encode(&self.object_not_kept()))
    }

    fn known_protobuf(&self) -> Option<Bytes> {
        if self.packed.get().is_some() {
            return None;
        }
        self.fresh.lock().as_ref()?.protobuf.clone()
    }
}

/// Decodes bytes that were checked to be decodable, or were encoded here.
fn decoded(json: &[u8]) -> Object {
    Object::from_json(json).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn object(text: &str) -> Object {
        Object::from_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn an_object_that_was_let_go_of_is_the_same_when_decoded_again() {
        let bytes = br#"{"apiVersion":"v1","kind":"K","metadata":{"name":"a"},"spec":{"n":1}}"#;
        let stored = Stored::of_bytes("a", bytes, Revision(7));
        let (before, json) = (stored.object(), stored.json());
        assert!(Arc::ptr_eq(&before, &stored.object()));
        stored.pack(&Interner::default());
        assert_eq!((&before, &json), (&stored.object(), &stored.json()));
        assert!(!Arc::ptr_eq(&stored.object(), &stored.object()));
        assert_eq!(before.resource_version(), "7");
    }

    #[test]
    fn bytes_and_object_agree_whichever_came_first() {
        // Other writers' JSON: if it is not compact, it is decoded to set its resourceVersion.
        for text in [r#"{"data":{"metadata":{}},"metadata":{"name":"a"}}"#, r#"{"metadata" : {"name":"a"}}"#]
        {
            let of_bytes = Stored::of_bytes("a", text.as_bytes(), Revision(7));
            let of_object = Stored::new("a".into(), object(text), Revision(7));
            assert_eq!(of_bytes.object(), of_object.object());
            of_bytes.pack(&Interner::default());
            assert_eq!(of_bytes.object(), of_object.object());
        }
    }

    #[test]
    fn what_follows_the_type_is_the_same_before_and_after_packing() {
        let text = r#"{"apiVersion":"v1","kind":"K","metadata":{"name":"a"}}"#;
        let stored = Stored::new("a".into(), object(text), Revision(7));
        let behind = |head: &str| {
            let mut out = BytesMut::from("{");
            stored
                .write_without_prefix(head.as_bytes(), &mut out)
                .then(|| String::from_utf8(out.to_vec()).unwrap())
        };
        let heads =
            [r#"{"apiVersion":"v1","kind":"K","#, r#"{"apiVersion":"v1","#, "", "{\"kind\"", "[", text];
        let before = heads.map(behind);
        stored.pack(&Interner::default());
        assert_eq!(before, heads.map(behind));
        assert!(before[0].is_some() && before[1].is_some() && before[3].is_none());
    }

    #[test]
    fn protobuf_is_kept_while_the_object_is_fresh_and_never_beside_the_packed_text() {
        let stored = Stored::new("a".into(), object(r#"{"metadata":{"name":"a"}}"#), Revision(7));
        assert_eq!(stored.protobuf(|_| Bytes::from_static(b"made")), "made");
        assert_eq!(stored.protobuf(|_| Bytes::from_static(b"anew")), "made");
        stored.pack(&Interner::default());
        assert_eq!(stored.protobuf(|object| object.name().to_owned().into()), "a");
        assert_eq!(stored.protobuf(|_| Bytes::from_static(b"anew")), "anew");
        assert!(stored.fresh.lock().is_none());
    }

    #[test]
    fn readers_of_many_objects_leave_nothing_behind() {
        let stored = Stored::new("a".into(), object(r#"{"metadata":{"name":"a"}}"#), Revision(7));
        assert_eq!(stored.protobuf_not_kept(|object| object.name().to_owned().into()), "a");
        assert_eq!(stored.object_not_kept().name(), "a");
        let kept = |stored: &Stored| {
            stored.fresh.lock().as_ref().map(|fresh| (fresh.decoded.is_some(), fresh.protobuf.is_some()))
        };
        assert_eq!(kept(&stored), Some((false, false)));
        // What is kept already is used.
        assert_eq!(stored.protobuf(|_| Bytes::from_static(b"made")), "made");
        assert_eq!(kept(&stored), Some((true, true)));
        assert_eq!(stored.protobuf_not_kept(|_| Bytes::new()), "made");
        assert!(Arc::ptr_eq(&stored.object(), &stored.object_not_kept()));
    }
}
