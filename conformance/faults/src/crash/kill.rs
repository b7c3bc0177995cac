//! Processes that are killed: at a named point, or at any time.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use drydock_storage_sqlite::SqliteBackend;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::model::{Model, Wrote, options};
use crate::tally::Tally;
use crate::{InjectedFault, folder};

/// Kills of processes on one store.
const KILLS: usize = 13;
/// The point at which a process is killed, and the highest number of passings before that. For `anywhere`, its
/// answers are counted.
const POINTS: [(&str, u64); KILLS] = [
    ("before-begin", 40),
    ("applied", 40),
    ("committed", 40),
    ("published", 40),
    ("compaction-walked", 4),
    ("compaction-committed", 4),
    ("wal-write", 200),
    ("wal-sync", 40),
    ("checkpoint-write", 40),
    ("checkpoint-sync", 4),
    ("backup-write", 12),
    ("backup-sync", 1),
    ("anywhere", 200),
];

/// Runs one store from its creation through a kill at each point.
pub async fn round(seed: u64, inject: Option<InjectedFault>, tally: &mut Tally) -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("store.db");
    let mut chance = StdRng::seed_from_u64(seed);
    let mut model = Model::default();
    drop(SqliteBackend::open(&path, options())?);
    for (life, (point, most)) in POINTS.into_iter().enumerate() {
        let hits = chance.random_range(1..=most);
        let died = live(&path, seed + life as u64, (point, hits), inject, &mut model, tally)?;
        if inject == Some(InjectedFault::LostWrite) {
            let newest = "DELETE FROM log WHERE revision = (SELECT max(revision) FROM log)";
            rusqlite::Connection::open(&path)?.execute_batch(newest)?;
        }
        model.swap_events = inject == Some(InjectedFault::ReorderedEvent);
        let checked =
            model.verify(&path).await.with_context(|| format!("after a death at {point}, {hits}"))?;
        tally.crash(if died { point } else { "ended by itself" }, checked);
    }
    Ok(())
}

/// Runs a process until it ends, and reads what it prints. Returns whether it was killed.
fn live(
    path: &Path,
    seed: u64,
    (point, hits): (&str, u64),
    inject: Option<InjectedFault>,
    model: &mut Model,
    tally: &mut Tally,
) -> Result<bool> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").arg(path).arg(format!("--seed={seed}")).stdout(Stdio::piped());
    if point != "anywhere" {
        command.arg(format!("--point={point}")).arg(format!("--hits={hits}"));
    }
    if inject == Some(InjectedFault::EarlyAck) {
        command.arg("--early-ack");
    }
    let mut child = command.spawn()?;
    let heard = hear(&mut child, model, if point == "anywhere" { hits } else { u64::MAX });
    if heard.is_err() {
        let _ = child.kill();
    }
    let status = child.wait()?;
    tally.writes += heard?;
    ensure!(status.success() || status.signal() == Some(9), "it ended with {status} by itself");
    Ok(status.signal() == Some(9))
}

/// Records everything that it printed: what is in the pipe was printed before it was killed. Returns the acknowledged
/// writes.
fn hear(child: &mut Child, model: &mut Model, kill_after: u64) -> Result<u64> {
    let mut output = BufReader::new(child.stdout.take().context("no stdout")?);
    let (mut acknowledged, mut line) = (0, String::new());
    // A last line that is cut off does not count.
    while output.read_line(&mut line)? > 0 && line.ends_with('\n') {
        let said = std::mem::take(&mut line);
        let line = said.trim_end();
        match line.split_once(' ') {
            Some(("t", write)) => model.tried(wrote(write)?),
            Some(("a" | "s", rest)) => {
                let (revision, write) = rest.split_once(' ').context("a line was cut off")?;
                acknowledged += u64::from(line.starts_with('a'));
                model.acknowledged(revision.parse()?, wrote(write)?)?;
            }
            _ => {}
        }
        if acknowledged == kill_after {
            child.kill()?;
        }
    }
    Ok(acknowledged)
}

fn wrote(text: &str) -> Result<Wrote> {
    let (key, value) = text.split_once(' ').context("a line was cut off")?;
    Ok((key.to_owned(), (value != "-").then(|| value.to_owned())))
}
