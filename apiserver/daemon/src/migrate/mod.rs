//! Moves the objects from the embedded store to etcd, and back. During a move no API server may run on the embedded
//! store; API servers on etcd accept no writes from the moment at which the objects are read.
//!
//! The target store continues with revisions above all that the source gave out, and answers 410 for an older one:
//! clients list again, and no client receives the target's events as if they followed what it had seen. The embedded
//! store can use the revisions as they are, so there each object keeps its resourceVersion, and a watch resumes from
//! the last revision; in etcd each object gets a new one. The source does not change, except for a mark that says
//! where the objects go and, at the end, that all of them are there and were read back: no server starts on a marked
//! store. A move that was aborted is repeated with the same command, which finds out how far it got; `reclaim`
//! removes the mark.

use std::fs;
use std::path::Path;

use drydock_storage::backend::{Backend, BackendError, KeyValue, Result, Revision, prefix_range};
use drydock_storage::values;
use drydock_storage_etcd::{self as etcd, EtcdConfig};
use drydock_storage_sqlite::{self as sqlite, Progress, SqliteBackend, SqliteOptions};

/// Pairs read at a time.
const PAGE: usize = 500;

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Number of keys.
    pub keys: u64,
    /// The last revision of the source.
    pub from: Revision,
    /// The first revision of the target.
    pub to: Revision,
    /// Why the source could not be marked as moved; `None` if it was.
    pub unmarked: Option<String>,
}

/// Moves the pairs in the file `from` to an unused prefix of etcd.
pub async fn to_etcd(from: &Path, to: &EtcdConfig, progress: &Progress) -> Result<Moved> {
    if !fs::exists(from).unwrap_or(true) {
        return Err(BackendError::Unavailable(format!("{} does not exist", from.display())));
    }
    // The store stays open to the end, so no server can start on it meanwhile.
    let source = SqliteBackend::open(from, SqliteOptions { leaving: true, ..SqliteOptions::default() })?;
    sqlite::check(from, progress)?;
    let at = source.current_revision().await?;
    let mut pages = Pages::new(&source, at);
    if !pages.any(progress).await? {
        return Err(nothing_to_move(&from.display().to_string(), "--data-dir"));
    }
    let place = format!("{} in etcd ({})", to.prefix, to.servers.join(","));
    let made = match sqlite::attempt(from)? {
        Some(attempt) => etcd::PrefixImport::completed(to, attempt).await?,
        None => None,
    };
    let first = match made {
        Some(first) => first,
        None => fill_etcd(&mut pages, (from, at), (to, &place), progress).await?,
    };
    let marked = sqlite::end_move(from, &place);
    Ok(Moved { keys: pages.total, from: at, to: first, unmarked: unmarked(marked) })
}

async fn fill_etcd(
    pages: &mut Pages<'_>,
    (from, at): (&Path, Revision),
    (to, place): (&EtcdConfig, &str),
    progress: &Progress,
) -> Result<Revision> {
    let mut target = etcd::PrefixImport::begin(to, at).await?;
    sqlite::begin_move(from, place, target.attempt())?;
    let filled = async {
        while let Some(pairs) = pages.next(progress).await? {
            target.add(pairs).await?;
        }
        Ok(())
    };
    if let Err(error) = filled.await {
        log_failed_undo(sqlite::undo_move(from));
        return Err(error);
    }
    // If it is unknown whether the prefix is open, the mark stays: servers may have started there.
    target.finish().await
}

/// Moves the pairs under a prefix of etcd to a new file `to`.
pub async fn to_embedded(from: &EtcdConfig, to: &Path, progress: &Progress) -> Result<Moved> {
    let target = sqlite::FileImport::begin(to);
    let source = match etcd::MoveSource::inspect(from).await {
        Ok(source) => source,
        Err(error) => return Err(target.err().unwrap_or(error)),
    };
    let there = source.backend().range(prefix_range(values::ALL), 1, None).await?;
    let place = std::path::absolute(to).unwrap_or_else(|_| to.to_owned()).display().to_string();
    let left = source.aborted_move();
    let made = left.as_ref().and_then(|left| sqlite::imported(to, left.attempt()));
    let (mark, keys, first) = match (left, made) {
        (Some(left), Some(first)) => (left, there.count, first),
        _ => {
            let target = target?;
            if there.items.is_empty() {
                return Err(nothing_to_move(&format!("{} in etcd", from.prefix), "--etcd-prefix"));
            }
            fill_embedded(&source, target, &place, progress).await?
        }
    };
    let at = mark.at();
    let marked = mark.done(&place).await;
    Ok(Moved { keys, from: at, to: first, unmarked: unmarked(marked) })
}

async fn fill_embedded(
    source: &etcd::MoveSource,
    mut target: sqlite::FileImport,
    place: &str,
    progress: &Progress,
) -> Result<(etcd::MoveMark, u64, Revision)> {
    // From here on no server writes.
    let mark = source.close(place).await?;
    // One more: a watch from this revision has missed nothing, and one from before it must get an error.
    let first = Revision(mark.at().0 + 1);
    let filled = async {
        let mut pages = Pages::new(source.backend(), mark.at());
        pages.any(progress).await?;
        while let Some(pairs) = pages.next(progress).await? {
            for pair in &pairs {
                let wrong = |why| BackendError::Corrupt(format!("{} in etcd: {why}", pair.key));
                values::check(&pair.key, &pair.value).map_err(wrong)?;
            }
            target.add(&pairs)?;
        }
        mark.check_unchanged().await?;
        target.finish(first, mark.attempt(), progress)?;
        Ok(pages.read)
    };
    match filled.await {
        Ok(keys) => Ok((mark, keys, first)),
        Err(error) => {
            log_failed_undo(mark.undo().await);
            Err(error)
        }
    }
}

/// All objects were moved, even if the mark could not be written.
fn unmarked(marked: Result<()>) -> Option<String> {
    marked.err().map(|error| error.to_string())
}

/// Logs that the mark of a failed move could not be removed; `reclaim` removes it. The move itself returns its own
/// error.
fn log_failed_undo(undone: Result<()>) {
    if let Err(error) = undone {
        tracing::warn!(%error, "what objects were to be moved from stays marked: run `migrate` again, or `reclaim`");
    }
}

/// The error for a source without objects: its flag is probably wrong.
fn nothing_to_move(place: &str, flag: &str) -> BackendError {
    BackendError::Unavailable(format!("there is nothing to move in {place}: is {flag} right?"))
}

/// Reads all pairs of a store at one revision, page by page.
struct Pages<'s> {
    source: &'s dyn Backend,
    at: Revision,
    start: Option<String>,
    ahead: Option<Vec<KeyValue>>,
    read: u64,
    total: u64,
}

impl<'s> Pages<'s> {
    fn new(source: &'s dyn Backend, at: Revision) -> Self {
        Self { source, at, start: Some(values::ALL.to_owned()), ahead: None, read: 0, total: 0 }
    }

    /// Returns whether there are any pairs. Counts them, once, and keeps the first page for [`Pages::next`].
    async fn any(&mut self, progress: &Progress) -> Result<bool> {
        let first = self.source.range(prefix_range(values::ALL), PAGE, Some(self.at)).await?;
        self.total = first.count;
        let any = !first.items.is_empty();
        self.ahead = Some(self.advance(first.items, progress));
        Ok(any)
    }

    async fn next(&mut self, progress: &Progress) -> Result<Option<Vec<KeyValue>>> {
        if let Some(pairs) = self.ahead.take() {
            return Ok(Some(pairs));
        }
        let Some(start) = self.start.take() else { return Ok(None) };
        let end = prefix_range(values::ALL).end;
        let pairs = self.source.page(start..end, PAGE, Some(self.at)).await?;
        Ok(Some(self.advance(pairs, progress)))
    }

    /// Continues after these pairs, and reports progress.
    fn advance(&mut self, pairs: Vec<KeyValue>, progress: &Progress) -> Vec<KeyValue> {
        self.read += pairs.len() as u64;
        progress.report("moving", self.read, self.total);
        self.start = pairs.last().filter(|_| pairs.len() == PAGE).map(|pair| format!("{}\0", pair.key));
        pairs
    }
}

#[cfg(test)]
mod tests;
