//! Runs the commands that work on the stored data, and shows their progress.

use anyhow::Context;
use drydock_storage_etcd as etcd;
use drydock_storage_sqlite::{self as sqlite, Progress};
use indicatif::{ProgressBar, ProgressStyle};

use crate::flags::{Backup, Check, DataCommand, Migrate, Reclaim, Restore, Store};
use crate::{fencing_tokens, migrate};

/// Runs a command, and prints its result: one line, but for a list.
pub async fn run(command: DataCommand) -> anyhow::Result<()> {
    let bar = Bar::new();
    let said = match command {
        DataCommand::Backup(flags) => backup(&flags, &bar),
        DataCommand::Restore(flags) => restore(&flags, &bar),
        DataCommand::Check(flags) => check(&flags, &bar),
        DataCommand::Migrate(flags) => migrate(&flags, &bar).await,
        DataCommand::Reclaim(flags) => reclaim(&flags).await,
        DataCommand::FencingTokens(flags) => fencing_tokens::run(&flags).await.context("fencing-tokens"),
    };
    bar.clear();
    println!("{}", said?);
    Ok(())
}

fn backup(flags: &Backup, bar: &Bar) -> anyhow::Result<String> {
    let from = flags.data_dir.file();
    let contents = sqlite::backup(&from, &flags.file, &bar.progress()).context("backup")?;
    Ok(format!("{} is a backup of {}: {contents}", flags.file.display(), from.display()))
}

fn restore(flags: &Restore, bar: &Bar) -> anyhow::Result<String> {
    flags.data_dir.directory().create()?;
    let to = flags.data_dir.file();
    let restored = sqlite::restore(&flags.file, &to, flags.bump_revision, &bar.progress());
    let contents = restored.context("restore")?;
    Ok(format!("{} is restored from {}: {contents}", to.display(), flags.file.display()))
}

fn check(flags: &Check, bar: &Bar) -> anyhow::Result<String> {
    let file = flags.file.clone().unwrap_or_else(|| flags.data_dir.file());
    let contents = sqlite::check(&file, &bar.progress()).context("check")?;
    Ok(format!("{} is whole: {contents}", file.display()))
}

async fn migrate(flags: &Migrate, bar: &Bar) -> anyhow::Result<String> {
    let (file, etcd) = (flags.storage.data_dir.file(), flags.storage.etcd.config());
    let in_etcd = format!("{} in etcd", etcd.prefix);
    let (moved, from, to) = match flags.to {
        Store::Etcd => {
            let moved = migrate::to_etcd(&file, &etcd, &bar.progress()).await.context("migrate")?;
            (moved, file.display().to_string(), in_etcd)
        }
        Store::Embedded => {
            flags.storage.data_dir.directory().create()?;
            let moved = migrate::to_embedded(&etcd, &file, &bar.progress()).await.context("migrate")?;
            (moved, in_etcd, file.display().to_string())
        }
    };
    let (keys, last, first) = (moved.keys, moved.from.0, moved.to.0);
    let then = match moved.unmarked {
        None => "servers no longer start on it".to_owned(),
        Some(why) => format!("start no server on it again, as it could not be marked: {why}"),
    };
    Ok(format!(
        "moved {keys} keys to {to}, which goes on at revision {first}, from {from}, at revision {last}: {then}"
    ))
}

async fn reclaim(flags: &Reclaim) -> anyhow::Result<String> {
    let (name, revision) = if flags.storage.is_etcd() {
        let etcd = flags.storage.etcd.config();
        (format!("{} in etcd", etcd.prefix), etcd::reclaim(&etcd, flags.bump_revision).await)
    } else {
        let file = flags.storage.data_dir.file();
        (file.display().to_string(), sqlite::reclaim(&file, flags.bump_revision))
    };
    let revision = revision.context("reclaim")?.0;
    Ok(format!("servers start on {name} again, which goes on at revision {revision}"))
}

/// The progress of long work on stderr, if that is a terminal: a line that is overwritten.
struct Bar(ProgressBar);

impl Bar {
    /// Creates an empty line. Nothing is shown if stderr is no terminal.
    fn new() -> Self {
        Self(ProgressBar::no_length())
    }

    /// Returns the callback that updates the line.
    fn progress(&self) -> Progress {
        let bar = self.0.clone();
        Progress::new(move |stage| {
            if bar.message() != stage.name {
                let template = if stage.total > 0 { "{msg} {bar:40} {percent} %" } else { "{msg} ..." };
                bar.set_style(ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar()));
                bar.set_message(stage.name);
            }
            bar.set_length(stage.total);
            bar.set_position(stage.done);
        })
    }

    /// Removes the line.
    fn clear(&self) {
        self.0.finish_and_clear();
    }
}
