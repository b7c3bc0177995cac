//! Interns the text that objects of a kind have in common, so that each text is held once.
//!
//! Objects that the same program wrote have the same type and own the same fields: managed fields are often more than
//! half of an object, and differ only in their times. Such common text is found by searching the JSON only. A wrong
//! guess does no harm, because the JSON is assembled again byte by byte.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use memchr::memmem::{Finder, find};
use parking_lot::Mutex;

/// Maximum number of texts that are interned; further text is stored with each object.
const MAX_TEXTS: usize = 4096;
/// Shorter texts are not interned.
const SHORTEST: usize = 48;
/// Number of refusals between two searches for texts that no object uses any more.
const REFUSALS_PER_SEARCH: u32 = 4096;
/// apiVersion and kind end within this many bytes.
const TYPE: usize = 512;

static MANAGED_FIELDS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""managedFields":["#));

/// A text that several objects may share.
#[derive(Clone, Debug)]
pub(super) struct Interned(Arc<Box<[u8]>>);

/// The interned texts.
#[derive(Default)]
pub(crate) struct Interner {
    texts: Mutex<InternedTexts>,
}

#[derive(Default)]
struct InternedTexts {
    runs: HashSet<Interned>,
    refused: u32,
}

impl Interner {
    /// Interns a text. Returns `None` if too many others are interned.
    pub(super) fn intern(&self, text: &[u8]) -> Option<Interned> {
        let mut texts = self.texts.lock();
        if let Some(run) = texts.runs.get(text) {
            return Some(run.clone());
        }
        if texts.runs.len() >= MAX_TEXTS {
            if texts.refused.is_multiple_of(REFUSALS_PER_SEARCH) {
                texts.runs.retain(|run| Arc::strong_count(&run.0) > 1);
            }
            if texts.runs.len() >= MAX_TEXTS {
                texts.refused = texts.refused.wrapping_add(1);
                return None;
            }
        }
        let run = Interned(Arc::new(text.into()));
        texts.runs.insert(run.clone());
        Some(run)
    }
}

/// Returns the ranges of an object's compact JSON that other objects may have as well, in order: its type, and its
/// managed fields between their times.
pub(super) fn common(json: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let of_type = find(json.get(..TYPE).unwrap_or(json), br#""metadata":{"#).map(|end| 0..end);
    let behind = of_type.as_ref().map_or(0, |range| range.end);
    let first = MANAGED_FIELDS.find(&json[behind..]).and_then(|at| upto_time(json, behind + at));
    let fields = std::iter::successors(first, |run| next(json, run.end));
    of_type.into_iter().chain(fields).filter(|run| run.len() >= SHORTEST)
}

fn upto_time(json: &[u8], from: usize) -> Option<Range<usize>> {
    const TIME: &[u8] = br#""time":""#;
    find(&json[from..], TIME).map(|at| from..from + at + TIME.len())
}

/// Returns the range of the managed fields after a time that begins at `at`, if there are more.
fn next(json: &[u8], at: usize) -> Option<Range<usize>> {
    let from = at + memchr::memchr(b'"', &json[at..])?;
    json[from..].starts_with(br#""},{"#).then(|| upto_time(json, from)).flatten()
}

impl std::ops::Deref for Interned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Interned {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl Hash for Interned {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl PartialEq for Interned {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Interned {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn objects_share_their_type_and_their_managed_fields_but_for_the_times() {
        let manager =
            r#"{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}},"manager":"m","time":"T"}"#;
        let rest = format!(r#""managedFields":[{manager},{manager}],"name":"time""#);
        let json = format!(r#"{{"apiVersion":"group.example.com/v1","kind":"Kind","metadata":{{{rest}}}}}"#);
        let common: Vec<_> = common(json.as_bytes()).map(|run| &json[run]).collect();
        let end = r#""manager":"m","time":""#;
        assert_eq!(common.len(), 3);
        assert_eq!(common[0], r#"{"apiVersion":"group.example.com/v1","kind":"Kind","#);
        assert!(common[1].starts_with(r#""managedFields":[{"apiV"#) && common[1].ends_with(end));
        assert!(common[2].starts_with(r#""},{"apiVersion""#) && common[2].ends_with(end));
    }

    #[test]
    fn runs_that_nobody_has_any_more_make_room() {
        let interner = Interner::default();
        let held: Vec<_> =
            (0..MAX_TEXTS).filter_map(|number| interner.intern(number.to_string().as_bytes())).collect();
        assert_eq!(held.len(), MAX_TEXTS);
        assert!(interner.intern(b"new").is_none() && interner.intern(b"7").is_some());
        drop(held);
        (0..REFUSALS_PER_SEARCH).for_each(|_| drop(interner.intern(b"new")));
        assert!(interner.intern(b"new").is_some());
    }
}
