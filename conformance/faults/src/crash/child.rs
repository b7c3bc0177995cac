//! The process that is killed: it writes, prints what it tries and what was acknowledged, and kills itself at a named point
//! if it was given one.
//!
//! ```text
//!   t KEY VALUE     a write is sent; the value of a delete is -
//!   a REVISION KEY VALUE     it was acknowledged
//!   s REVISION KEY VALUE     a watch delivered it
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use drydock_storage::backend::{Backend, Revision, WatchItem, prefix_range};
use drydock_storage_sqlite::{self as sqlite, Progress, SqliteBackend, failpoints};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rustix::process::{Signal, getpid, kill_process};

use crate::model::{Wrote, options};
use crate::work::CrashWriter;

/// Writers at a time.
const WRITERS: u32 = 6;
/// Writes of each, if it is not killed.
const WRITES: u64 = 40;

/// The options of a child.
#[derive(Clone, Debug, clap::Args)]
pub struct Child {
    /// The store
    pub path: PathBuf,
    /// Of what it writes
    #[arg(long)]
    pub seed: u64,
    /// Where to die
    #[arg(long)]
    pub point: Option<String>,
    /// At which passing of it
    #[arg(long, default_value_t = 1)]
    pub hits: u64,
    /// Acknowledges before it has written: for the test of this test
    #[arg(long)]
    pub early_ack: bool,
}

/// Writes until it is killed, or enough is written.
pub async fn run(child: Child) -> Result<()> {
    drydock_faults::install();
    if let Some(point) = child.point.clone() {
        let hits = Arc::new(AtomicU64::new(child.hits));
        let die_at = move |passed: &'static str| {
            if passed == point && hits.fetch_sub(1, Ordering::SeqCst) == 1 {
                let _ = kill_process(getpid(), Signal::KILL);
            }
        };
        failpoints::install(Box::new(die_at.clone()));
        drydock_faults::disk().on_change(Box::new(die_at));
    }
    let store: Arc<dyn Backend> = Arc::new(SqliteBackend::open(&child.path, options())?);
    let start = store.current_revision().await?;
    tokio::spawn(tell(store.clone(), start));
    let writers = if child.early_ack { 1 } else { WRITERS };
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..writers {
        tasks.spawn(write(store.clone(), number, child.clone()));
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

async fn write(store: Arc<dyn Backend>, number: u32, child: Child) -> Result<()> {
    let chance = StdRng::seed_from_u64(child.seed.wrapping_add(number.into()));
    let mut writer = CrashWriter::new(number, child.seed, chance);
    for count in 0..WRITES {
        let next = writer.next(store.as_ref()).await?;
        let wrote = next.wrote.clone();
        println!("t {}", line(&wrote));
        if child.early_ack {
            println!("a {} {}", store.current_revision().await?.0 + 1, line(&wrote));
        }
        let Some(revision) = next.send(store.as_ref()).await? else { continue };
        println!("a {} {}", revision.0, line(&wrote));
        if number == 0 && count % 5 == 4 {
            store.compact(Revision(revision.0.saturating_sub(20).max(1))).await?;
        }
        if number == 1 && count % 20 == 5 {
            backup(&child).await?;
        }
    }
    Ok(())
}

async fn backup(child: &Child) -> Result<()> {
    let (from, to) = (child.path.clone(), child.path.with_extension("copy"));
    let _ = std::fs::remove_file(&to);
    tokio::task::spawn_blocking(move || sqlite::backup(&from, &to, &Progress::silent())).await??;
    Ok(())
}

/// Prints what a watch delivers.
async fn tell(store: Arc<dyn Backend>, after: Revision) -> Result<()> {
    let mut watch = store.watch(prefix_range("/"), after).await?;
    while let Some(item) = watch.recv().await {
        let WatchItem::Events(events) = item else { continue };
        for event in events {
            let value = event.value.map(|value| String::from_utf8_lossy(&value).into_owned());
            println!("s {} {}", event.revision.0, line(&(event.key, value)));
        }
    }
    Ok(())
}

fn line((key, value): &Wrote) -> String {
    format!("{key} {}", value.as_deref().unwrap_or("-"))
}
