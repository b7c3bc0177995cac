//! Stores a text for a long time in as little memory as possible.
//!
//! ```text
//!   own:          [ first block          |  rest ]      bytes that only this object has
//!                    ▲        ▲
//!   shared_runs:  run A    run B                       bytes shared with other objects, inserted at these positions
//! ```
//!
//! Allocators return blocks of a few sizes, four between a power of two and the next (mimalloc's page-queue.c,
//! mi_bin; jemalloc(3), "size classes"). A text that is slightly longer than one of them would waste a fifth of its
//! memory, so it is split where a block ends.

use bytes::{BufMut, BytesMut};
use smallvec::SmallVec;

use super::interner::{Interned, Interner, common};

/// Bytes that a second block must save.
const WORTH: usize = 96;

/// A text in up to two blocks, without the runs that it shares with others.
#[derive(Debug)]
pub(super) struct Packed {
    first: Box<[u8]>,
    rest: Box<[u8]>,
    shared_runs: SmallVec<[SharedRun; 2]>,
}

/// A shared run, and the number of own bytes before it.
#[derive(Debug)]
struct SharedRun {
    at: u32,
    run: Interned,
}

impl Packed {
    /// Packs a text.
    pub fn of(text: &[u8], interner: &Interner) -> Self {
        let (mut own, mut shared_runs, mut done) = (Vec::with_capacity(text.len()), SmallVec::new(), 0);
        for range in common(text) {
            let start = own.len() + range.start - done;
            let (Ok(at), Some(run)) = (u32::try_from(start), interner.intern(&text[range.clone()])) else {
                continue;
            };
            own.extend_from_slice(&text[done..range.start]);
            done = range.end;
            shared_runs.push(SharedRun { at, run });
        }
        own.extend_from_slice(&text[done..]);
        shared_runs.shrink_to_fit();
        let (first, rest) = own.split_at(block(own.len()));
        Self { first: first.into(), rest: rest.into(), shared_runs }
    }

    /// Length of the text in bytes.
    pub fn len(&self) -> usize {
        self.own() + self.shared_runs.iter().map(|shared| shared.run.len()).sum::<usize>()
    }

    fn own(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    /// Appends the text.
    pub fn write(&self, out: &mut BytesMut) {
        out.reserve(self.len());
        self.write_from(&self.shared_runs, out);
    }

    /// Appends the text without its prefix `head`. Returns `false`, and appends nothing, if it does not begin with
    /// `head`.
    pub fn write_without_prefix(&self, head: &[u8], out: &mut BytesMut) -> bool {
        if let [SharedRun { at: 0, run }, others @ ..] = &*self.shared_runs
            && **run == *head
        {
            self.write_from(others, out);
            return true;
        }
        let mut text = BytesMut::new();
        self.write(&mut text);
        text.strip_prefix(head).map(|rest| out.put_slice(rest)).is_some()
    }

    /// Appends the own bytes with these runs inserted.
    fn write_from(&self, shared_runs: &[SharedRun], out: &mut BytesMut) {
        let mut done = 0;
        for SharedRun { at, run } in shared_runs {
            self.write_own(done, *at as usize, out);
            out.put_slice(run);
            done = *at as usize;
        }
        self.write_own(done, self.own(), out);
    }

    /// Appends a range of the own bytes.
    fn write_own(&self, from: usize, to: usize, out: &mut BytesMut) {
        let border = self.first.len();
        out.put_slice(&self.first[from.min(border)..to.min(border)]);
        out.put_slice(&self.rest[from.max(border) - border..to.max(border) - border]);
    }
}

/// Returns how many bytes of a text go into the first block: all, unless that would waste too much.
fn block(length: usize) -> usize {
    let Some(power) = length.checked_ilog2().filter(|power| *power >= 8) else { return length };
    let step = 1 << (power - 2);
    let fits = length / step * step;
    if fits + step - length > WORTH { fits } else { length }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn packed(text: &[u8]) -> Packed {
        Packed::of(text, &Interner::default())
    }

    fn written(packed: &Packed) -> Vec<u8> {
        let mut out = BytesMut::new();
        packed.write(&mut out);
        out.to_vec()
    }

    #[test]
    fn blocks_are_of_the_sizes_that_allocators_give() {
        for (length, first) in [(0, 0), (255, 255), (2048, 2048), (2095, 2048), (2500, 2500), (2700, 2560)] {
            assert_eq!((length, block(length)), (length, first));
        }
    }

    #[test]
    fn what_two_objects_have_in_common_is_held_once() {
        let interner = Interner::default();
        let fields = format!(r#""managedFields":[{{"fieldsV1":{{"f:{}":{{}}}},"time":""#, "a".repeat(300));
        let object = |name: &str| format!(r#"{{"metadata":{{{fields}{name}"}}],"name":"{name}"}}}}"#);
        let [one, two] =
            ["one", "two"].map(|name| (object(name), Packed::of(object(name).as_bytes(), &interner)));
        assert!(one.1.own() < 64 && one.1.len() == one.0.len());
        assert_eq!(written(&one.1), one.0.as_bytes());
        assert_eq!(written(&two.1), two.0.as_bytes());
        assert!(std::ptr::eq(&*one.1.shared_runs[0].run, &*two.1.shared_runs[0].run));
    }

    proptest! {
        #[test]
        fn any_text_comes_back(parts in prop::collection::vec(prop_oneof![
            Just(r#"{"apiVersion":"group.example.com/v1alpha1","kind":"WidgetOfAllSorts","#.to_owned()),
            Just(r#""metadata":{"#.to_owned()),
            Just(r#""managedFields":["#.to_owned()),
            Just(r#""time":""#.to_owned()),
            Just(r#""},{"#.to_owned()),
            "[a-z\"{}]{0,700}",
        ], 0..12)) {
            let text = parts.concat();
            let packed = packed(text.as_bytes());
            prop_assert_eq!(packed.len(), text.len());
            prop_assert_eq!(written(&packed), text.as_bytes());
            for head in ["", "{", parts.first().map_or("x", String::as_str)] {
                let mut out = BytesMut::new();
                let found = packed.write_without_prefix(head.as_bytes(), &mut out);
                prop_assert_eq!(found.then_some(&*out), text.as_bytes().strip_prefix(head.as_bytes()));
            }
        }
    }
}
