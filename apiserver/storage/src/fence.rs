//! Fencing of writers that take turns, such as leaders. The backend stores the newest term of each writer, and every
//! write of a term depends on it. So no replica carries out a write of an older term, however late it arrives.
//!
//! ```text
//!   /fences/<writer> -> term      raised by the first write of a newer term
//!   a write of a term             only if that key has not changed since the term was admitted
//! ```
//!
//! A term is the time of its beginning, in microseconds since 1970. One that is too far ahead of the server's clock does
//! not begin, because it would make the terms of all right clocks outdated.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use drydock_machinery::RefusedToken;
use parking_lot::Mutex;

use crate::backend::{
    Backend, BackendError, CompareAndSwap, Guard, KeyValue, Revision, WriteOutcome, prefix_range,
};

/// The prefix of the keys; a writer's name follows.
pub(crate) const PREFIX: &str = "/fences/";
/// Maximum number of writers in the memory cache; beyond it the cache is emptied, and each is read again.
const REMEMBERED: usize = 1024;
/// How far a new term may be ahead of the server's clock.
const AHEAD_OF_CLOCK: u64 = 24 * 3600 * 1_000_000;
/// How far a new term may be above the newest one, wherever the clock is: each term is a microsecond above the one before
/// where that was ahead, and terms in which nothing was written are not stored.
const ABOVE_NEWEST: u64 = 1_000_000;

/// Why a term is refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FenceError {
    /// The term may not write.
    #[error(transparent)]
    Refused(#[from] RefusedToken),
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// The fencing terms of all writers.
pub struct Fences {
    backend: Arc<dyn Backend>,
    known: Mutex<HashMap<String, NewestTerm>>,
}

/// The newest term of a writer, and the revision of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NewestTerm {
    term: u64,
    revision: Revision,
}

/// The newest term of a writer, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTerm {
    /// The name of the writer.
    pub writer: String,
    /// Its newest term.
    pub term: u64,
}

impl Fences {
    /// Creates fences whose terms are stored in `backend`.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend, known: Mutex::default() }
    }

    /// Starts or continues the term of a writer, which ends its older terms. Returns the guard for each of its
    /// writes. Fails if a newer term has begun, or if the term is new and more than a day ahead of `now`, the server's
    /// clock in microseconds since 1970. A term that follows the newest one within a second is not too far ahead: where
    /// that is years ahead already, later terms still can begin.
    pub async fn enter(&self, writer: &str, term: u64, now: u64) -> Result<Guard, FenceError> {
        let key = format!("{PREFIX}{writer}");
        let mut known = self.known.lock().get(writer).copied();
        let mut is_read = false;
        loop {
            match known {
                Some(known) if known.term == term => {
                    self.remember(writer, known);
                    return Ok(Guard { key, revision: known.revision });
                }
                // What is remembered may have been raised by another replica, or reset.
                None if !is_read => (known, is_read) = (self.stored(&key).await?, true),
                newest => match refusal(newest, term, now) {
                    None => known = self.raise(&key, newest, term).await?,
                    Some(_) if !is_read => (known, is_read) = (self.stored(&key).await?, true),
                    Some(refused) => return Err(refused.into()),
                },
            }
        }
    }

    /// Removes a writer from the memory cache, because its guard has changed.
    pub fn forget(&self, writer: &str) {
        self.known.lock().remove(writer);
    }

    /// Removes the newest term of a writer from the backend, so that older ones may begin again, and returns it. Writes
    /// that were admitted before are refused.
    pub async fn reset(&self, writer: &str) -> Result<Option<u64>, BackendError> {
        let key = format!("{PREFIX}{writer}");
        self.forget(writer);
        let mut stored = self.stored(&key).await?;
        while let Some(newest) = stored {
            let expected = Some(newest.revision);
            let key = key.clone();
            let write =
                CompareAndSwap { key, expected, value: None, guard: None, priority: Default::default() };
            match self.backend.write(write).await? {
                WriteOutcome::Committed(_) => return Ok(Some(newest.term)),
                WriteOutcome::Conflict(present, _) => stored = present.map(read).transpose()?,
                WriteOutcome::GuardFailed => break,
            }
        }
        Ok(None)
    }

    async fn stored(&self, key: &str) -> Result<Option<NewestTerm>, BackendError> {
        self.backend.get(key, None).await?.0.map(read).transpose()
    }

    /// Writes the term. Returns the term that is stored afterwards: this one, or that of a concurrent writer.
    async fn raise(
        &self,
        key: &str,
        older: Option<NewestTerm>,
        term: u64,
    ) -> Result<Option<NewestTerm>, FenceError> {
        let expected = older.map(|known| known.revision);
        let value = Some(term.to_string().into());
        let write = CompareAndSwap {
            key: key.to_owned(),
            expected,
            value,
            guard: None,
            priority: Default::default(),
        };
        match self.backend.write(write).await? {
            WriteOutcome::Committed(revision) => Ok(Some(NewestTerm { term, revision })),
            WriteOutcome::Conflict(present, _) => Ok(present.map(read).transpose()?),
            WriteOutcome::GuardFailed => Ok(None),
        }
    }

    fn remember(&self, writer: &str, known: NewestTerm) {
        let mut all = self.known.lock();
        if all.len() >= REMEMBERED && !all.contains_key(writer) {
            all.clear();
        }
        all.insert(writer.to_owned(), known);
    }
}

/// Returns the refusal of a term that may not begin after `newest`, which is another one.
fn refusal(newest: Option<NewestTerm>, term: u64, now: u64) -> Option<RefusedToken> {
    let newest = newest.map_or(0, |newest| newest.term);
    let highest = now.saturating_add(AHEAD_OF_CLOCK).max(newest.saturating_add(ABOVE_NEWEST));
    (term < newest || term > highest).then_some(RefusedToken { term, newest, highest })
}

/// The keys of all terms.
pub fn keys() -> Range<String> {
    prefix_range(PREFIX)
}

/// Reads the terms from the pairs of [`keys`].
///
/// # Errors
/// If a value is no term.
pub fn terms(pairs: Vec<KeyValue>) -> Result<Vec<StoredTerm>, BackendError> {
    let named = |pair: KeyValue| {
        let writer = pair.key.strip_prefix(PREFIX).unwrap_or_default().to_owned();
        Ok(StoredTerm { writer, term: read(pair)?.term })
    };
    pairs.into_iter().map(named).collect()
}

fn read(pair: KeyValue) -> Result<NewestTerm, BackendError> {
    let term =
        term(&pair.value).ok_or_else(|| BackendError::Corrupt(format!("{} is not a term", pair.key)))?;
    Ok(NewestTerm { term, revision: pair.mod_revision })
}

/// Parses the term in a stored value.
pub(crate) fn term(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
