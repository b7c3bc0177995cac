//! Copies of a whole store: a backup of one that may be in use, and a new store of a backup.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};
use tempfile::TempPath;

use super::check::{self, Contents};
use super::error::{io, named, translate};
use super::file::{beside, one_name, private, sync_directory, vacant};
use super::open::give_log;
use super::part::part;
use super::stamp::Stamp;
use super::{connect, schema};
use crate::backend::{BackendError, Result, Revision};
use crate::progress::Progress;
use crate::values::raised;

/// Instructions of SQLite between two looks at how far a copy is.
const LOOK: i32 = 100_000;

/// Writes a consistent copy of the store at `from` into a new file at `to`, while another process reads and writes it:
/// what SQLite reads is one snapshot (sqlite.org/lang_vacuum.html, "VACUUM INTO"). The copy is read back and checked
/// before it gets its name.
pub fn backup(from: &Path, to: &Path, progress: &Progress) -> Result<Contents> {
    if fs::exists(to).map_err(|error| io(to, &error))? {
        return Err(exists(to));
    }
    let source = connect::to_read(from)?;
    one_name(from)?;
    Stamp::read(&source).and_then(|stamp| stamp.is_ours()).map_err(|error| named(from, error))?;
    let part = part(to)?;
    copy(source, part.path(), progress)?;
    let contents = check::check(part.path(), progress)?;
    // Closed when no connection has it open any more: SQLite's locks on a file end with any handle of its process.
    let (_held, part) = part.into_parts();
    give_name(part, to)?;
    Ok(contents)
}

/// Nothing is ever overwritten.
fn exists(to: &Path) -> BackendError {
    BackendError::Unavailable(format!(
        "{} exists, and nothing is overwritten: name another file",
        to.display()
    ))
}

/// Makes the store at `to` of the backup at `from`. Revisions go on `bump` above the backup's, and what was below is
/// forgotten: clients may have seen later revisions than the backup has, and must hear that they are gone rather than
/// wait for them, or get other events under the same numbers (etcdctl snapshot restore --bump-revision
/// --mark-compacted). With a bump of 0 the new store is as the backup, history and all.
pub fn restore(from: &Path, to: &Path, bump: u64, progress: &Progress) -> Result<Contents> {
    let _lock = vacant(to)?;
    check::check(from, progress)?;
    let source = connect::to_read(from)?;
    let new = beside(to, ".new");
    private(&new).map_err(|error| io(&new, &error))?;
    let new = TempPath::try_from_path(new).map_err(|error| io(to, &error))?;
    copy(source, &new, progress)?;
    raise(&new, bump)?;
    let contents = check::check(&new, progress)?;
    give_log(&new)?;
    give_name(new, to)?;
    Ok(contents)
}

/// The copy has the same tables, history and stamp. SQLite takes an empty file, keeps its permissions, and does not make
/// it durable.
fn copy(mut source: Connection, to: &Path, progress: &Progress) -> Result<()> {
    let name = to.to_str().ok_or_else(|| BackendError::Unavailable("the path is not UTF-8".to_owned()))?;
    let total = size(&source)?;
    let (watched, told) = (to.to_owned(), progress.clone());
    let look = move || {
        let done = fs::metadata(&watched).map_or(0, |file| file.len());
        told.tell("copying", done.min(total), total);
        false
    };
    source.progress_handler(LOOK, Some(look)).map_err(translate)?;
    source.execute("VACUUM INTO ?1", [name]).map(|_| ()).map_err(|error| match translate(error) {
        BackendError::NoSpace(_) => BackendError::Unavailable(format!("no space left for {}", to.display())),
        other => other,
    })
}

/// A file that is durable gets its name, if nobody has it, which is then durable too. It is removed if that fails.
pub(super) fn give_name(part: TempPath, to: &Path) -> Result<()> {
    let synced = File::open(&part).and_then(|file| file.sync_all());
    synced.map_err(|error| io(&part, &error))?;
    let named = part.persist_noclobber(to).map_err(|failed| match failed.error.kind() {
        ErrorKind::AlreadyExists => exists(to),
        _ => io(to, &failed.error),
    });
    named.and_then(|()| sync_directory(to).map_err(|error| io(to, &error)))
}

/// Raises the revision by `bump`, and forgets all before.
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

/// Raises it within the caller's transaction; returns the new one.
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
