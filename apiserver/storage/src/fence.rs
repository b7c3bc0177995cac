//! Fencing of writers that take turns, such as leaders. The backend stores the newest term of each writer, and every
//! write of a term depends on it. So no replica carries out a write of an older term, however late it arrives.
//!
//! ```text
//!   /fences/<writer> -> term      raised by the first write of a newer term
//!   a write of a term             only if that key has not changed since the term was admitted
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::backend::{Backend, BackendError, CompareAndSwap, Guard, KeyValue, Revision, WriteOutcome};

/// The prefix of the keys; a writer's name follows.
pub(crate) const PREFIX: &str = "/fences/";
/// Maximum number of writers in the memory cache; beyond it the cache is emptied, and each is read again.
const REMEMBERED: usize = 1024;

/// Why a term is refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FenceError {
    /// A newer term has begun.
    #[error("fencing token {term} is outdated; the newest is {newest}")]
    Over {
        /// The term of the request.
        term: u64,
        /// The newest term.
        newest: u64,
    },
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

impl Fences {
    /// Creates fences whose terms are stored in `backend`.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend, known: Mutex::default() }
    }

    /// Starts or continues the term of a writer, which ends its older terms. Returns the guard for each of its
    /// writes. Fails if a newer term has begun.
    pub async fn enter(&self, writer: &str, term: u64) -> Result<Guard, FenceError> {
        let key = format!("{PREFIX}{writer}");
        let remembered = self.known.lock().get(writer).copied();
        let mut known = match remembered {
            Some(known) => Some(known),
            None => self.backend.get(&key, None).await?.0.map(read).transpose()?,
        };
        loop {
            match known {
                Some(known) if known.term > term => {
                    self.remember(writer, known);
                    return Err(FenceError::Over { term, newest: known.term });
                }
                Some(known) if known.term == term => {
                    self.remember(writer, known);
                    return Ok(Guard { key, revision: known.revision });
                }
                older => known = self.raise(&key, older, term).await?,
            }
        }
    }

    /// Removes a writer from the memory cache, because its guard has changed.
    pub fn forget(&self, writer: &str) {
        self.known.lock().remove(writer);
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

fn read(pair: KeyValue) -> Result<NewestTerm, BackendError> {
    let term =
        term(&pair.value).ok_or_else(|| BackendError::Corrupt(format!("{} is not a term", pair.key)))?;
    Ok(NewestTerm { term, revision: pair.mod_revision })
}

/// Parses the term in a stored value.
pub(crate) fn term(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
