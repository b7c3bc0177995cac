//! Power losses, on a disk of this process: what was not synced is lost in part and out of order, and until then writes
//! end short, syncs fail and space runs out.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use drydock_faults::{Faults, disk};
use drydock_storage::backend::{Backend, BackendError, Revision, WatchItem, prefix_range};
use drydock_storage_sqlite::{self as sqlite, Progress, SqliteBackend};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;

use crate::model::{CheckedCounts, Model, options};
use crate::tally::Tally;
use crate::work::CrashWriter;
use crate::{InjectedFault, folder};

/// Power losses of one store.
const POWER_LOSSES: u64 = 20;
/// How many stores lose power while they are created.
const STORES_CREATED: u64 = 4;
/// Writes and syncs during the creation of a store, and some more.
const CHANGES_OF_A_CREATION: u64 = 40;
/// Writes between two power losses, at most.
const WRITES_OF_A_LIFE: u64 = 150;
/// Writers in every other life: their writes share commits. With a single writer, a seed always does the same.
const WRITERS: u32 = 4;

/// One store from its creation through a number of power losses.
pub async fn round(seed: u64, inject: Option<InjectedFault>, tally: &mut Tally) -> Result<()> {
    drydock_faults::install();
    let folder = folder()?;
    let path = folder.path().join("store.db");
    let mut chance = StdRng::seed_from_u64(seed);
    let mut model = Model::default();
    for number in 0..STORES_CREATED {
        let path = folder.path().join(format!("made-{number}.db"));
        make(&path, &mut chance, inject, tally).with_context(|| format!("making {number}"))?;
    }
    drop(SqliteBackend::open(&path, options())?);
    for life in 0..POWER_LOSSES {
        let left = chance.random_range(1..400);
        let faults = faults(&mut chance, inject);
        disk().arm(chance.random(), left, faults);
        live(&path, &mut model, life, &mut chance, tally).await.with_context(|| format!("life {life}"))?;
        disk().power_cycle()?;
        model.swap_events = inject == Some(InjectedFault::ReorderedEvent);
        let checked = model.verify(&path).await.with_context(|| format!("after life {life}"))?;
        tally.crash("power-loss", checked);
    }
    Ok(())
}

/// The power is lost while a store is created. A store that was opened must be whole; one that was not can be created
/// again.
fn make(path: &Path, chance: &mut StdRng, inject: Option<InjectedFault>, tally: &mut Tally) -> Result<()> {
    let (left, faults) = (chance.random_range(0..CHANGES_OF_A_CREATION), faults(chance, inject));
    disk().arm(chance.random(), left, faults);
    let opened = SqliteBackend::open(path, options()).map(drop).is_ok();
    disk().power_cycle()?;
    ensure!(path.exists() || !opened, "it was opened, and is not there");
    drop(SqliteBackend::open(path, options())?);
    let contents = sqlite::check(path, &Progress::silent()).context("check")?;
    ensure!(contents.rows == 0 && contents.revision == Revision(1), "it is new, and has {contents}");
    let left = path.with_extension("db.new");
    ensure!(!left.exists(), "{} is left", left.display());
    tally.crash(
        if opened { "power-loss, just made" } else { "power-loss, being made" },
        CheckedCounts::default(),
    );
    Ok(())
}

/// Returns the faults of one life. A third of the lives have none: there, errors come with the loss of power only.
fn faults(chance: &mut StdRng, inject: Option<InjectedFault>) -> Faults {
    let lying_sync = if inject == Some(InjectedFault::LostWrite) { 500 } else { 0 };
    match chance.random_range(0..3) {
        0 => Faults { lying_sync, ..Faults::default() },
        _ => Faults { short_write: 5, no_space: 10, bad_sync: 20, lying_sync },
    }
}

/// Writes until the power goes or enough is written, and records what a watch delivers.
async fn live(
    path: &Path,
    model: &mut Model,
    life: u64,
    chance: &mut StdRng,
    tally: &mut Tally,
) -> Result<()> {
    // The power may be lost, or a write fail, while it is opened.
    let Ok(store) = SqliteBackend::open(path, options()) else { return Ok(()) };
    let store = Arc::new(store);
    let start = store.current_revision().await?;
    let mut watch = store.watch(prefix_range("/"), start).await?;
    let writer_count = if life.is_multiple_of(2) { 1 } else { WRITERS };
    let mut writers: Vec<_> = (0..writer_count)
        .map(|number| CrashWriter::new(number, life, StdRng::seed_from_u64(chance.random())))
        .collect();
    for _ in 0..WRITES_OF_A_LIFE / u64::from(writer_count) {
        if disk().is_dead() || !write(&store, &mut writers, model, tally).await? {
            break;
        }
        if chance.random_range(0..20) == 0 {
            // It may fail as a write may.
            let _ = store.compact(store.current_revision().await?).await;
        }
    }
    drop(Arc::into_inner(store).context("somebody still has the store")?);
    // Nor does the watch read any more when it has ended.
    while let Some(item) = watch.recv().await {
        let WatchItem::Events(events) = item else { continue };
        for event in events {
            let value = event.value.map(|value| String::from_utf8_lossy(&value).into_owned());
            model.acknowledged(event.revision.0, (event.key, value))?;
        }
    }
    Ok(())
}

/// One write of each writer, all at a time, each to its end. `false` if nothing can be read any more.
async fn write(
    store: &Arc<SqliteBackend>,
    writers: &mut [CrashWriter],
    model: &mut Model,
    tally: &mut Tally,
) -> Result<bool> {
    let (mut sent, mut readable) = (JoinSet::new(), true);
    for writer in writers {
        let Ok(next) = writer.next(store.as_ref()).await else {
            readable = false;
            break;
        };
        let (store, wrote) = (store.clone(), next.wrote.clone());
        model.tried(wrote.clone());
        sent.spawn(async move { (wrote, next.send(store.as_ref()).await) });
    }
    while let Some(answered) = sent.join_next().await {
        match answered? {
            (wrote, Ok(Some(revision))) => {
                model.acknowledged(revision.0, wrote)?;
                tally.writes += 1;
            }
            (wrote, Ok(None)) => anyhow::bail!("{wrote:?} was a conflict, and nobody else writes its key"),
            (wrote, Err(BackendError::NoSpace(_))) => {
                model.refused(&wrote);
                tally.fault("no space");
            }
            (wrote, Err(BackendError::Closed(_))) => {
                model.refused(&wrote);
                tally.fault("ended");
            }
            (_, Err(BackendError::Corrupt(why))) => anyhow::bail!("{why}"),
            (_, Err(_)) => tally.fault("unknown outcome"),
        }
    }
    Ok(readable)
}

/// Waits until the store reports that its disk is full, or that it is not: at once after a write that found no
/// space, and after one that was smaller than that when the store has checked by itself.
async fn reports_full(store: &dyn Backend, full: bool) -> Result<()> {
    let began = Instant::now();
    while store.refuses_writes().is_some() != full {
        ensure!(!full && began.elapsed() < Duration::from_secs(300), "full: {full}, and it does not say so");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// A disk that is full for a while: writes are refused with an error, reads go on, and writes go on when there is room.
pub async fn full_disk() -> Result<()> {
    drydock_faults::install();
    let folder = folder()?;
    let path = folder.path().join("store.db");
    let store: Arc<dyn Backend> = Arc::new(SqliteBackend::open(&path, options())?);
    let mut writer = CrashWriter::new(0, 0, StdRng::seed_from_u64(0));
    let mut model = Model::default();
    for _ in 0..5 {
        for full in [false, true, false] {
            disk().fill(full);
            let next = writer.next(store.as_ref()).await.context("reads go on")?;
            let wrote = next.wrote.clone();
            model.tried(wrote.clone());
            match next.send(store.as_ref()).await {
                Ok(Some(revision)) if !full => model.acknowledged(revision.0, wrote)?,
                Err(BackendError::NoSpace(_)) if full => model.refused(&wrote),
                other => anyhow::bail!("full: {full}, and a write came to {other:?}"),
            }
            reports_full(store.as_ref(), full).await?;
        }
    }
    drop(store);
    model.verify(&path).await.map(drop)
}
