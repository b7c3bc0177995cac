//! The temporary file of a backup until it is complete: `NAME.xxxxxx.part`.
//!
//! It is locked while the backup runs. An unlocked one is left from a backup that was killed: the next backup of the
//! same name removes it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use drydock_storage::backend::{BackendError, Result};
use tempfile::NamedTempFile;

use crate::error::io;

/// The suffix of the file.
const SUFFIX: &str = ".part";
/// Number of random characters in the name.
const LETTERS: usize = 6;

/// Creates an empty file beside `to` that no other backup uses and only its owner can read. It is removed when it is
/// dropped.
pub(super) fn temporary_backup(to: &Path) -> Result<NamedTempFile> {
    let name =
        to.file_name().ok_or_else(|| BackendError::Unavailable(format!("{} is no file", to.display())))?;
    let folder = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    remove_stale(folder, name).and_then(|()| make(folder, name)).map_err(|error| io(folder, &error))
}

fn make(folder: &Path, name: &OsStr) -> io::Result<NamedTempFile> {
    let mut prefix = name.to_owned();
    prefix.push(".");
    loop {
        let mut new = tempfile::Builder::new();
        let made = new.prefix(&prefix).suffix(SUFFIX).rand_bytes(LETTERS).tempfile_in(folder)?;
        made.as_file().lock()?;
        // Another backup may have taken it for stale before it was locked, and removed it.
        if made.path().exists() {
            return Ok(made);
        }
    }
}

fn remove_stale(folder: &Path, name: &OsStr) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !is_part_of(&entry.file_name(), name) || !entry.file_type()?.is_file() {
            continue;
        }
        let file = match File::options().write(true).open(entry.path()) {
            Ok(file) => file,
            // It has been renamed or removed since, or this process may not write to it.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        if file.try_lock().is_ok() {
            tracing::warn!(file = %entry.path().display(), "removing the temporary file of an interrupted backup");
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether `file` is the name of a temporary file of the backup `name`.
fn is_part_of(file: &OsStr, name: &OsStr) -> bool {
    let letters = file
        .as_encoded_bytes()
        .strip_prefix(name.as_encoded_bytes())
        .and_then(|rest| rest.strip_prefix(b"."))
        .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    letters.is_some_and(|letters| letters.len() == LETTERS && letters.iter().all(u8::is_ascii_alphanumeric))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_backup_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let others =
            ["a.db.part", "a.db.12345.part", "a.db.12345-.part", "b.db.123456.part", "a.db.123456.copy"];
        for name in others.iter().chain(&["a.db.123456.part"]) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let to = folder.path().join("a.db");
        let running = temporary_backup(&to).unwrap();
        let mut left: Vec<_> = others.iter().map(|name| (*name).to_owned()).collect();
        left.push(running.path().file_name().unwrap().to_str().unwrap().to_owned());
        left.sort();
        assert_eq!(names(folder.path()), left);
        let other = temporary_backup(&to).unwrap();
        assert!(running.path().exists(), "it goes on");
        drop((running, other));
        assert_eq!(names(folder.path()).len(), others.len());
    }
}
