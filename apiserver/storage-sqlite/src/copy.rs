//! Copies of a whole store: a backup of a store that may be in use, and a new store from a backup.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use drydock_storage::backend::{BackendError, Result, Revision};
use drydock_storage::values::raised;
use rusqlite::{Connection, TransactionBehavior};
use tempfile::TempPath;

use crate::check::{self, Contents, Progress};
use crate::error::{io, named, translate};
use crate::file::{create_private, one_name, sync_directory, with_suffix};
use crate::lock::lock_new;
use crate::schema::StoreFormat;
use crate::temporary_backup::temporary_backup;
use crate::{connect, schema};

/// Number of SQLite instructions between two progress reports.
const REPORT_EVERY: i32 = 100_000;

/// Writes a consistent copy of the store at `from` to a new file at `to`, also while another process uses the store:
/// SQLite reads one snapshot (sqlite.org/lang_vacuum.html, "VACUUM INTO"). The copy is checked before it gets its
/// name. Fails if `to` exists.
pub fn backup(from: &Path, to: &Path, progress: &Progress) -> Result<Contents> {
    if fs::exists(to).map_err(|error| io(to, &error))? {
        return Err(exists(to));
    }
    let source = connect::to_read(from)?;
    one_name(from)?;
    StoreFormat::read(&source)
        .and_then(|store_format| store_format.is_ours())
        .map_err(|error| named(from, error))?;
    let part = temporary_backup(to)?;
    copy(source, part.path(), progress)?;
    let contents = check::check(part.path(), progress)?;
    // The handle is kept until no connection has the file open: closing any handle of a file drops all of this
    // process's SQLite locks on it.
    let (_held, part) = part.into_parts();
    rename_into_place(part, to)?;
    Ok(contents)
}

/// The error for a target that exists: no file is ever overwritten.
fn exists(to: &Path) -> BackendError {
    BackendError::Unavailable(format!(
        "{} exists, and nothing is overwritten: name another file",
        to.display()
    ))
}

/// Creates the store at `to` from the backup at `from`. Revisions continue `bump` above the backup's, and the history
/// below is discarded: clients may have seen later revisions than the backup has, and must get an error for them
/// instead of waiting for them or receiving other events with the same revisions (etcdctl snapshot restore
/// --bump-revision --mark-compacted). With a bump of 0 the new store equals the backup, including its history.
pub fn restore(from: &Path, to: &Path, bump: u64, progress: &Progress) -> Result<Contents> {
    let _lock = lock_new(to)?;
    check::check(from, progress)?;
    let source = connect::to_read(from)?;
    let new = with_suffix(to, ".new");
    create_private(&new).map_err(|error| io(&new, &error))?;
    let new = TempPath::try_from_path(new).map_err(|error| io(to, &error))?;
    copy(source, &new, progress)?;
    raise(&new, bump)?;
    let contents = check::check(&new, progress)?;
    connect::enable_wal(&new)?;
    rename_into_place(new, to)?;
    Ok(contents)
}

/// Copies tables, history and format into the empty file at `to`. SQLite accepts an empty file, keeps its permissions,
/// and does not sync it.
fn copy(mut source: Connection, to: &Path, progress: &Progress) -> Result<()> {
    let name = to.to_str().ok_or_else(|| BackendError::Unavailable("the path is not UTF-8".to_owned()))?;
    let total = size(&source)?;
    let (copied, progress) = (to.to_owned(), progress.clone());
    let report = move || {
        let done = fs::metadata(&copied).map_or(0, |file| file.len());
        progress.report("copying", done.min(total), total);
        false
    };
    source.progress_handler(REPORT_EVERY, Some(report)).map_err(translate)?;
    source.execute("VACUUM INTO ?1", [name]).map(|_| ()).map_err(|error| match translate(error) {
        BackendError::NoSpace(_) => BackendError::Unavailable(format!("no space left for {}", to.display())),
        other => other,
    })
}

/// Syncs a file, renames it to its final name, and syncs the directory. Fails if the name is taken. A file that does
/// not get its name is removed.
pub(super) fn rename_into_place(part: TempPath, to: &Path) -> Result<()> {
    let synced = File::open(&part).and_then(|file| file.sync_all());
    synced.map_err(|error| io(&part, &error))?;
    let named = part.persist_noclobber(to).map_err(|failed| match failed.error.kind() {
        ErrorKind::AlreadyExists => exists(to),
        _ => io(to, &failed.error),
    });
    named.and_then(|()| sync_directory(to).map_err(|error| io(to, &error)))
}

/// Raises the revision by `bump`, and discards the history before it.
fn raise(path: &Path, bump: u64) -> Result<()> {
    if bump == 0 {
        return Ok(());
    }
    let mut connection = connect::to_change(path)?;
    let behavior = TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(behavior).map_err(translate)?;
    raise_within(&transaction, bump)?;
    transaction.commit().map_err(translate)?;
    connection.close().map_err(|(_, error)| translate(error))
}

/// As [`raise`], within the caller's transaction. Returns the new revision.
pub(super) fn raise_within(transaction: &Connection, bump: u64) -> Result<Revision> {
    let raised = raised(super::compaction::newest(transaction)?, bump)?;
    transaction.execute(schema::SET, ("compacted", raised.0)).map_err(translate)?;
    Ok(raised)
}

fn size(connection: &Connection) -> Result<u64> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let size = pragma("page_count").and_then(|pages| Ok(pages * pragma("page_size")?));
    size.map_err(translate)
}
