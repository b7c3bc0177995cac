//! A list in the protobuf envelope, which begins with the length of all items.
//!
//! To know the length, every item is encoded once before the first byte is sent. The first items are kept as they
//! were made; all others are dropped, and encoded again when they are sent: a list holds no more than any other
//! answer.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use drydock_serving::wire::negotiate::Transform;
use drydock_serving::wire::protobuf::{self, ENVELOPE_TAIL, envelope_head, item_head};
use drydock_storage::storage::Stored;
use drydock_storage::work_meter::{STEP, WorkMeter};

use super::pieces::{PIECE, Steps};
use super::{ListPage, Objects};
use crate::wire::codec;
use crate::wire::object::ObjectView;

/// Maximum bytes of encoded items that are kept until they are sent: those of a usual page of 500 objects.
const KEPT: usize = 1 << 20;

/// Makes a list in protobuf.
pub struct Protobuf {
    /// Absent after the first step.
    head: Option<Bytes>,
    /// The first items, encoded.
    kept: VecDeque<Bytes>,
    /// All others.
    objects: Objects,
    view: ObjectView,
}

impl Protobuf {
    /// A page in this view, and the bytes that are held for it. Yields between steps.
    pub async fn measured(page: &ListPage, view: ObjectView) -> (Self, usize) {
        let (mut kept, mut held, mut length) = (VecDeque::new(), 0, 0);
        let (mut work, mut is_full) = (WorkMeter::default(), false);
        for stored in page.items.iter() {
            work.worked(stored.json_len()).await;
            let item = encoded(&stored, &view);
            length += item_head(item.len()).len() + item.len();
            is_full |= held + item.len() > KEPT;
            if !is_full {
                held += item.len();
                kept.push_back(item);
            }
        }
        let objects = Box::new(page.items.iter().skip(kept.len()));
        let head = Some(head(page, &view, length));
        (Self { head, kept, objects, view }, held)
    }

    /// The next item, and how many bytes were decoded for it.
    fn item(&mut self) -> Option<(Bytes, usize)> {
        let kept = self.kept.pop_front().map(|item| (item, 0));
        kept.or_else(|| {
            let stored = self.objects.next()?;
            Some((encoded(&stored, &self.view), stored.json_len()))
        })
    }
}

impl Steps for Protobuf {
    fn step(&mut self, out: &mut BytesMut) -> bool {
        let (end, mut decoded) = (out.len() + PIECE, 0);
        if let Some(head) = self.head.take() {
            out.extend_from_slice(&head);
        }
        while out.len() < end && decoded < STEP {
            let Some((item, bytes)) = self.item() else {
                out.extend_from_slice(ENVELOPE_TAIL);
                return false;
            };
            out.extend_from_slice(&item_head(item.len()));
            out.extend_from_slice(&item);
            decoded += bytes;
        }
        true
    }
}

/// The envelope up to the items, which have `length` bytes together with their heads.
fn head(page: &ListPage, view: &ObjectView, length: usize) -> Bytes {
    let (kind, version) = match view.output.transform {
        Transform::Partial(v) | Transform::PartialList(v) => {
            ("PartialObjectMetadataList".to_owned(), format!("meta.k8s.io/{v}"))
        }
        _ => (format!("{}List", view.kind.names().kind), view.api_version()),
    };
    let meta = protobuf::list_meta(&page.revision.to_string(), &page.continue_, page.remaining);
    let mut head = envelope_head(&version, &kind, meta.len() + length);
    head.put_slice(&meta);
    head.freeze()
}

/// An item, without an envelope of its own.
fn encoded(stored: &Stored, view: &ObjectView) -> Bytes {
    let kind = view.kind.as_ref();
    match view.output.transform {
        Transform::None => {
            let enveloped = stored.protobuf_not_kept(|object| codec::object_protobuf(kind, object));
            protobuf::raw(&enveloped).unwrap_or_default()
        }
        _ => protobuf::partial(&codec::metadata_protobuf(kind, &stored.object_not_kept())),
    }
}
