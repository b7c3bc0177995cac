//! The file of the log: rotated at its maximum size; old files are kept up to a number and an age
//! (kube-apiserver --audit-log-maxsize, -maxbackup, -maxage, -compress).
//!
//! The newest of the old files is `NAME.1`, or `NAME.1.gz`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use logroller::{Compression, LogRoller, LogRollerBuilder, Rotation, RotationSize};

/// Only the owner may read audit logs.
const MODE: u32 = 0o600;
/// How often old files are looked at.
const EVERY: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Where the log goes, and how much of it is kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file.
    pub path: PathBuf,
    /// Days to keep rotated files; 0 keeps them forever.
    pub max_age: u32,
    /// Rotated files to keep; 0 keeps all.
    pub max_backups: u32,
    /// Megabytes at which the file is rotated; 0 is never.
    pub max_size: u32,
    /// Whether rotated files are compressed.
    pub compress: bool,
}

/// A file that is rotated.
pub struct Rotating {
    options: Options,
    out: Option<Out>,
    looked: Instant,
}

enum Out {
    Plain(File),
    Rolled(Box<LogRoller>),
}

impl Rotating {
    /// Opens the file. Creates it and its folder if they do not exist.
    pub fn open(options: Options) -> io::Result<Self> {
        let out = Some(open(&options)?);
        remove_old(&options);
        Ok(Self { options, out, looked: Instant::now() })
    }

    fn try_write(&mut self, line: &[u8]) -> io::Result<()> {
        let out = match &mut self.out {
            Some(out) => out,
            closed => closed.insert(open(&self.options)?),
        };
        let written = match out {
            Out::Plain(file) => file.write_all(line),
            Out::Rolled(roller) => roller.write_all(line),
        };
        if written.is_err() {
            self.out = None;
        }
        written
    }
}

impl Write for Rotating {
    /// If a write fails, opens the file again and tries once more: the file, or its folder, may have been moved.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.looked.elapsed() > EVERY {
            self.looked = Instant::now();
            remove_old(&self.options);
        }
        self.try_write(line).or_else(|_| self.try_write(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Some(Out::Plain(file)) => file.flush(),
            Some(Out::Rolled(roller)) => roller.flush(),
            None => Ok(()),
        }
    }
}

fn open(options: &Options) -> io::Result<Out> {
    let (folder, name) = split(&options.path)?;
    fs::create_dir_all(folder)?;
    let file = OpenOptions::new().create(true).append(true).mode(MODE).open(&options.path)?;
    if options.max_size == 0 {
        return Ok(Out::Plain(file));
    }
    let mut roller = LogRollerBuilder::new(folder, Path::new(name))
        .rotation(Rotation::SizeBased(RotationSize::MB(options.max_size.into())))
        .file_mode(MODE)
        // Flushing is for the end: it waits for what is being compressed.
        .graceful_shutdown(true);
    if options.max_backups > 0 {
        roller = roller.max_keep_files(options.max_backups.into());
    }
    if options.compress {
        roller = roller.compression(Compression::Gzip);
    }
    let roller = roller.build().map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Out::Rolled(Box::new(roller)))
}

fn split(path: &Path) -> io::Result<(&Path, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok((folder.unwrap_or(Path::new(".")), name))
}

/// Removes old files that were last written too long ago; one that cannot be removed is left to the next time.
fn remove_old(options: &Options) {
    let Ok((folder, name)) = split(&options.path) else { return };
    let Some(oldest) = SystemTime::now().checked_sub(DAY * options.max_age).filter(|_| options.max_age > 0)
    else {
        return;
    };
    let is_old = |entry: &fs::DirEntry| {
        let written = entry.metadata().and_then(|metadata| metadata.modified());
        is_backup(&entry.file_name().to_string_lossy(), name) && written.is_ok_and(|at| at < oldest)
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(is_old) {
        if let Err(error) = fs::remove_file(entry.path()) {
            tracing::warn!(%error, file = %entry.path().display(), "an old audit log cannot be removed");
        }
    }
}

/// `audit.log.3` or `audit.log.3.gz` beside `audit.log`.
fn is_backup(file: &str, name: &str) -> bool {
    let number = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
    let number = number.map(|rest| rest.strip_suffix(".gz").unwrap_or(rest));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn options(folder: &Path) -> Options {
        let path = folder.join("logs/audit.log");
        Options { path, max_age: 1, max_backups: 2, max_size: 1, compress: false }
    }

    fn files(folder: &Path) -> Vec<String> {
        let all = fs::read_dir(folder.join("logs")).unwrap();
        let mut names: Vec<String> =
            all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_is_full_is_turned_over_and_the_oldest_goes() {
        for (compress, expected) in [
            (false, ["audit.log", "audit.log.1", "audit.log.2"]),
            (true, ["audit.log", "audit.log.1.gz", "audit.log.2.gz"]),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let mut file = Rotating::open(Options { compress, ..options(dir.path()) }).unwrap();
            for _ in 0..5 {
                file.write_all(&vec![b'x'; 700 * 1024]).unwrap();
            }
            file.flush().unwrap();
            assert_eq!(files(dir.path()), expected);
            let mode = fs::metadata(dir.path().join("logs/audit.log")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, MODE);
        }
    }

    #[test]
    fn what_is_there_is_written_on_and_counts() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let mut file = Rotating::open(options(dir.path())).unwrap();
            file.write_all(&vec![b'x'; 600 * 1024]).unwrap();
            file.flush().unwrap();
        }
        assert_eq!(files(dir.path()), ["audit.log", "audit.log.1"]);
    }

    #[test]
    fn a_file_that_was_taken_away_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = Rotating::open(options(dir.path())).unwrap();
        file.write_all(&vec![b'x'; 900 * 1024]).unwrap();
        fs::remove_dir_all(dir.path().join("logs")).unwrap();
        file.write_all(&vec![b'y'; 900 * 1024]).unwrap();
        assert_eq!(fs::read(dir.path().join("logs/audit.log")).unwrap()[0], b'y');
    }

    #[test]
    fn old_files_are_removed_by_their_age_and_others_are_left() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("logs")).unwrap();
        let old = SystemTime::now() - DAY * 2;
        for name in ["audit.log.1", "audit.log.2.gz", "audit.log.x", "audit.logs.1", "audit.log"] {
            let file = File::create(dir.path().join("logs").join(name)).unwrap();
            file.set_modified(old).unwrap();
        }
        File::create(dir.path().join("logs/audit.log.3")).unwrap();
        Rotating::open(options(dir.path())).unwrap();
        assert_eq!(files(dir.path()), ["audit.log", "audit.log.3", "audit.log.x", "audit.logs.1"]);
    }
}
