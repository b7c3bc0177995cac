//! Objects moved from the embedded store to etcd, and back. No API server may be running on either.
//!
//! The store that they come to goes on with revisions above all that the other one gave out, and tells whoever names
//! an older one that it is gone (410): clients list again, and none is told of the new store's events as if they
//! followed what it saw. The embedded store can take the revisions as they are, so there each object keeps its
//! resourceVersion, and a watch resumes from the last revision; in etcd each object gets a new one. What they come from
//! stays as it is.

use std::fs;
use std::path::Path;

use crate::backend::{Backend, BackendError, KeyValue, Result, Revision, WatchItem, prefix_range};
use crate::etcd::{self, EtcdBackend, EtcdConfig};
use crate::progress::Progress;
use crate::sqlite::{self, SqliteBackend, SqliteOptions};
use crate::values;

/// Pairs that are read at a time.
const PAGE: usize = 500;

/// What was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// How many keys.
    pub keys: u64,
    /// The last revision of the store that they came from.
    pub from: Revision,
    /// The first one of the store that they came to.
    pub to: Revision,
}

/// Moves what is in the file `from` to a prefix of etcd that nobody has used.
pub async fn to_etcd(from: &Path, to: &EtcdConfig, progress: &Progress) -> Result<Moved> {
    if !fs::exists(from).unwrap_or(true) {
        return Err(BackendError::Unavailable(format!("{} does not exist", from.display())));
    }
    // Held to the end: no server starts on it meanwhile.
    let source = SqliteBackend::open(from, SqliteOptions::default())?;
    sqlite::check(from, progress)?;
    let at = source.current_revision().await?;
    let mut pages = Pages::new(&source, at);
    if !pages.any(progress).await? {
        return Err(nothing(&from.display().to_string(), "--data-dir"));
    }
    let mut target = etcd::Import::begin(to, at).await?;
    while let Some(pairs) = pages.next(progress).await? {
        target.add(pairs).await?;
    }
    Ok(Moved { keys: pages.read, from: at, to: target.finish().await? })
}

/// Moves what is under a prefix of etcd to a new file `to`.
pub async fn to_embedded(from: &EtcdConfig, to: &Path, progress: &Progress) -> Result<Moved> {
    let mut target = sqlite::Import::begin(to)?;
    let source = EtcdBackend::connect_to_read(from).await?;
    let at = source.current_revision().await?;
    let mut pages = Pages::new(&source, at);
    if !pages.any(progress).await? {
        return Err(nothing(&format!("{} in etcd", from.prefix), "--etcd-prefix"));
    }
    while let Some(pairs) = pages.next(progress).await? {
        for pair in &pairs {
            let wrong = |why| BackendError::Corrupt(format!("{} in etcd: {why}", pair.key));
            values::check(&pair.key, &pair.value).map_err(wrong)?;
        }
        target.add(&pairs)?;
    }
    unchanged(&source, at).await?;
    // One more: a watch from there on has missed nothing, and one from before must be told so.
    let first = Revision(at.0 + 1);
    target.finish(first, progress)?;
    Ok(Moved { keys: pages.read, from: at, to: first })
}

/// Whoever moves nothing has named the wrong place.
fn nothing(place: &str, flag: &str) -> BackendError {
    BackendError::Unavailable(format!("there is nothing to move in {place}: is {flag} right?"))
}

/// All pairs of a store at one revision.
struct Pages<'s> {
    source: &'s dyn Backend,
    at: Revision,
    start: Option<String>,
    ahead: Option<Vec<KeyValue>>,
    read: u64,
}

impl<'s> Pages<'s> {
    fn new(source: &'s dyn Backend, at: Revision) -> Self {
        Self { source, at, start: Some(values::ALL.to_owned()), ahead: None, read: 0 }
    }

    /// Whether there are any; the first are then kept for [`Pages::next`].
    async fn any(&mut self, progress: &Progress) -> Result<bool> {
        self.ahead = self.next(progress).await?;
        Ok(self.ahead.as_ref().is_some_and(|pairs| !pairs.is_empty()))
    }

    async fn next(&mut self, progress: &Progress) -> Result<Option<Vec<KeyValue>>> {
        if let Some(pairs) = self.ahead.take() {
            return Ok(Some(pairs));
        }
        let Some(start) = self.start.take() else { return Ok(None) };
        let end = prefix_range(values::ALL).end;
        let page = self.source.range(start..end, PAGE, Some(self.at)).await?;
        let left = page.count - page.items.len() as u64;
        progress.tell("moving", self.read, self.read + page.count);
        self.read += page.items.len() as u64;
        self.start = page.items.last().filter(|_| left > 0).map(|pair| format!("{}\0", pair.key));
        Ok(Some(page.items))
    }
}

/// Refuses if somebody has written since: an API server is still running.
async fn unchanged(source: &dyn Backend, at: Revision) -> Result<()> {
    let now = source.current_revision().await?;
    let mut changes = source.watch(prefix_range(values::ALL), at).await?;
    source.request_progress().await?;
    loop {
        match changes.recv().await {
            Some(WatchItem::Progress(upto)) if upto >= now => return Ok(()),
            Some(WatchItem::Progress(_)) => source.request_progress().await?,
            Some(WatchItem::Failed(error)) => return Err(error),
            Some(WatchItem::Events(_)) => {
                let why =
                    "objects were written while they were read: stop every API server on this etcd prefix";
                return Err(BackendError::Unavailable(why.to_owned()));
            }
            None => return Err(BackendError::Unavailable("the watch of etcd ended".to_owned())),
        }
    }
}
