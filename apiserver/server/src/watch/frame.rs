//! Frames events: makes their bytes on the wire.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use drydock_machinery::kind::{Names, Now};
use drydock_machinery::{ApiError, decode};
use drydock_serving::wire::negotiate::{Output, Transform, WireFormat};
use drydock_serving::wire::{protobuf, status};
use drydock_storage::backend::Revision;
use drydock_storage::storage::Stored;
use serde_json::json;

use super::recent_frames::{Frame, RecentFrames};
use crate::metrics::{KindEvents, WatchEvents};
use crate::wire::object::{ObjectView, object_bytes};

/// Frames the events of one watch.
pub struct Framer {
    view: ObjectView,
    clock: fn() -> Now,
    /// Column definitions go with the first row only.
    headers_due: bool,
    counts: KindEvents,
    recent_frames: Arc<RecentFrames>,
}

impl Framer {
    /// A framer for a watch on which nothing has been sent.
    pub fn new(
        view: ObjectView,
        clock: fn() -> Now,
        counts: &WatchEvents,
        recent_frames: Arc<RecentFrames>,
    ) -> Self {
        let counts = counts.of(view.kind.names());
        Self { view, clock, headers_due: true, counts, recent_frames }
    }

    /// Names of the kind.
    pub fn names(&self) -> &Names {
        self.view.kind.names()
    }

    /// Whether an object is framed without being decoded.
    pub fn is_plain(&self) -> bool {
        self.view.is_plain()
    }

    /// Returns a piece with one event. Watches that show the object untransformed share it.
    pub fn alone(&mut self, type_: &'static str, stored: &Arc<Stored>) -> Bytes {
        let mut made = BytesMut::new();
        if self.view.output.transform != Transform::None {
            self.object(type_, stored, &mut made);
            return made.freeze();
        }
        let frame = self.recent_frames.frame(type_, self.view.output.format, stored, || {
            let object = object_bytes(stored, &self.view, false);
            self.put(type_, &object, &mut made);
            Frame { bytes: made.freeze(), object: object.len() }
        });
        self.counts.count(frame.object);
        frame.bytes
    }

    /// Appends an event with an object.
    pub fn object(&mut self, type_: &str, stored: &Stored, out: &mut BytesMut) {
        let headers = std::mem::take(&mut self.headers_due);
        if matches!(self.view.output.transform, Transform::Table(_)) {
            self.view.now = (self.clock)();
        }
        let bytes = object_bytes(stored, &self.view, headers);
        self.event(type_, &bytes, out);
    }

    /// Appends a bookmark: an object of zeros with nothing but its revision, and the annotation that ends the initial
    /// events.
    pub fn bookmark(&mut self, revision: u64, initial: bool, out: &mut BytesMut) {
        let mut metadata = json!({});
        if initial {
            metadata = json!({"annotations": {"k8s.io/initial-events-end": "true"}});
        }
        let mut object = decode::zero_object(self.view.kind.schema());
        object.0.insert("apiVersion".to_owned(), self.view.api_version().into());
        object.0.insert("kind".to_owned(), self.names().kind.into());
        object.0.insert("metadata".to_owned(), metadata);
        let stored = Stored::new(String::new(), object, Revision(revision));
        self.object("BOOKMARK", &stored, out);
    }

    /// Returns the ERROR event, which ends a watch.
    pub fn error(&self, error: &ApiError) -> Bytes {
        let output = Output { pretty: false, transform: Transform::None, ..self.view.output };
        let mut out = BytesMut::new();
        self.event("ERROR", &status::encoded(&error.status, output), &mut out);
        out.freeze()
    }

    fn event(&self, type_: &str, object: &[u8], out: &mut BytesMut) {
        self.counts.count(object.len());
        self.put(type_, object, out);
    }

    fn put(&self, type_: &str, object: &[u8], out: &mut BytesMut) {
        if self.view.output.format == WireFormat::Protobuf {
            return protobuf::watch_frame(out, type_, object);
        }
        out.reserve(object.len() + 40);
        out.put_slice(br#"{"type":""#);
        out.put_slice(type_.as_bytes());
        out.put_slice(br#"","object":"#);
        out.put_slice(object);
        out.put_slice(b"}\n");
    }
}
