//! The frames of the newest events: made by the first watcher that sends one, and sent by the others as they are.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use drydock_serving::wire::negotiate::WireFormat;
use drydock_storage::storage::Stored;
use parking_lot::Mutex;

/// Maximum frames that are kept. Watches that are further behind send several events at once, and no two send the
/// same.
const FRAMES: usize = 16;
/// Larger ones are not kept.
const LARGE: usize = 64 * 1024;

/// Frames of single events.
#[derive(Default)]
pub struct RecentFrames {
    frames: Mutex<VecDeque<Framed>>,
}

/// An event as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What is sent.
    pub bytes: Bytes,
    /// How many bytes of that are the object.
    pub object: usize,
}

struct Framed {
    type_: &'static str,
    format: WireFormat,
    /// Held, so that no other object can have its address.
    stored: Arc<Stored>,
    frame: Frame,
}

impl RecentFrames {
    /// Returns the known frame of an untransformed object, or else the one that `make` makes.
    pub fn frame(
        &self,
        type_: &'static str,
        format: WireFormat,
        stored: &Arc<Stored>,
        make: impl FnOnce() -> Frame,
    ) -> Frame {
        let known = |framed: &&Framed| {
            Arc::ptr_eq(&framed.stored, stored) && framed.format == format && framed.type_ == type_
        };
        if let Some(framed) = self.frames.lock().iter().rev().find(known) {
            return framed.frame.clone();
        }
        let frame = make();
        if frame.bytes.len() <= LARGE {
            let framed = Framed { type_, format, stored: stored.clone(), frame: frame.clone() };
            let mut frames = self.frames.lock();
            let oldest = if frames.len() == FRAMES { frames.pop_front() } else { None };
            frames.push_back(framed);
            drop(frames);
            drop(oldest);
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use drydock_machinery::Object;
    use drydock_storage::backend::Revision;

    use super::*;

    fn stored() -> Arc<Stored> {
        Arc::new(Stored::new("a".to_owned(), Object::default(), Revision(1)))
    }

    fn frame(text: &'static str) -> Frame {
        Frame { bytes: text.into(), object: text.len() }
    }

    #[test]
    fn a_frame_is_made_once_for_each_type_and_format() {
        let (recent_frames, stored) = (RecentFrames::default(), stored());
        let of = |type_, format, made| recent_frames.frame(type_, format, &stored, || frame(made)).bytes;
        assert_eq!(of("ADDED", WireFormat::Json, "one"), "one");
        assert_eq!(of("ADDED", WireFormat::Json, "anew"), "one");
        assert_eq!(of("MODIFIED", WireFormat::Json, "two"), "two");
        assert_eq!(of("ADDED", WireFormat::Protobuf, "three"), "three");
    }

    #[test]
    fn equal_objects_are_not_the_same() {
        let recent_frames = RecentFrames::default();
        recent_frames.frame("ADDED", WireFormat::Json, &stored(), || frame("one"));
        let other = recent_frames.frame("ADDED", WireFormat::Json, &stored(), || frame("two"));
        assert_eq!(other, frame("two"));
    }

    #[test]
    fn a_few_are_kept_and_no_large_ones() {
        let recent_frames = RecentFrames::default();
        recent_frames.frame("ADDED", WireFormat::Json, &stored(), || Frame {
            bytes: vec![0; LARGE + 1].into(),
            object: LARGE,
        });
        assert!(recent_frames.frames.lock().is_empty());
        for _ in 0..FRAMES + 3 {
            recent_frames.frame("ADDED", WireFormat::Json, &stored(), || frame(""));
        }
        assert_eq!(recent_frames.frames.lock().len(), FRAMES);
    }
}
