//! The frames of the newest events: made by the first watcher that sends one, and sent by the others as they are.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use drydock_storage::storage::Stored;
use parking_lot::Mutex;

use crate::negotiate::Format;

/// Most frames that are kept. Watchers who are further behind send several events at once, which no two do alike.
const FRAMES: usize = 16;
/// Larger ones are not kept.
const LARGE: usize = 64 * 1024;

/// Frames of single events.
#[derive(Default)]
pub struct Recent {
    frames: Mutex<VecDeque<Framed>>,
}

struct Framed {
    type_: &'static str,
    format: Format,
    /// Held, so that no other object can be in its place.
    stored: Arc<Stored>,
    frame: Bytes,
}

impl Recent {
    /// The frame of an object for which nothing stands in, or what `make` makes of it.
    pub fn frame(
        &self,
        type_: &'static str,
        format: Format,
        stored: &Arc<Stored>,
        make: impl FnOnce() -> Bytes,
    ) -> Bytes {
        let known = |framed: &&Framed| {
            Arc::ptr_eq(&framed.stored, stored) && framed.format == format && framed.type_ == type_
        };
        if let Some(framed) = self.frames.lock().iter().rev().find(known) {
            return framed.frame.clone();
        }
        let frame = make();
        if frame.len() <= LARGE {
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

    #[test]
    fn a_frame_is_made_once_for_each_type_and_format() {
        let (recent, stored) = (Recent::default(), stored());
        let of = |type_, format, made: &'static str| {
            recent.frame(type_, format, &stored, || Bytes::from_static(made.as_bytes()))
        };
        assert_eq!(of("ADDED", Format::Json, "one"), "one");
        assert_eq!(of("ADDED", Format::Json, "anew"), "one");
        assert_eq!(of("MODIFIED", Format::Json, "two"), "two");
        assert_eq!(of("ADDED", Format::Protobuf, "three"), "three");
    }

    #[test]
    fn equal_objects_are_not_the_same() {
        let recent = Recent::default();
        recent.frame("ADDED", Format::Json, &stored(), || Bytes::from_static(b"one"));
        let other = recent.frame("ADDED", Format::Json, &stored(), || Bytes::from_static(b"two"));
        assert_eq!(other, "two");
    }

    #[test]
    fn a_few_are_kept_and_no_large_ones() {
        let recent = Recent::default();
        recent.frame("ADDED", Format::Json, &stored(), || vec![0; LARGE + 1].into());
        assert!(recent.frames.lock().is_empty());
        for _ in 0..FRAMES + 3 {
            recent.frame("ADDED", Format::Json, &stored(), Bytes::new);
        }
        assert_eq!(recent.frames.lock().len(), FRAMES);
    }
}
