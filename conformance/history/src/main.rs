//! Clients at random, faults in between, and a judge who believes nobody: whether the store keeps its promises.
//!
//! ```text
//!   clients, watchers ──> storage, three layers on two servers ──> SQLite or etcd <── faults
//!          │ record
//!          ▼
//!       History ──> truth (the log of all writes) ──> check: writes, order, reads, watches, linearizability
//! ```
//!
//! A seed gives the same requests and faults again; which of them meet is the scheduler's.

mod check;
mod context;
mod object;
mod place;
mod plant;
mod record;
mod run;
mod work;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use place::Place;
use place::etcd::Etcd;
use place::sqlite::Sqlite;
use plant::Planted;
use run::Options;

/// Looks for faults of the store by what its clients see.
#[derive(Parser)]
struct Flags {
    /// Where objects are kept; may be given again
    #[arg(long, value_enum, default_values = ["sqlite", "etcd", "cluster"])]
    on: Vec<On>,
    /// Seconds of each run
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seed of the first run; the next ones count on
    #[arg(long)]
    seed: Option<u64>,
    /// Runs on each place
    #[arg(long, default_value_t = 1)]
    runs: u64,
    #[arg(long, value_enum, hide = true)]
    plant: Option<Planted>,
    /// Plants each fault once, and fails if one is not found
    #[arg(long, hide = true)]
    plant_each: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum On {
    Sqlite,
    Etcd,
    Cluster,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let flags = Flags::parse();
    let first = flags.seed.unwrap_or_else(rand::random);
    let mut right = true;
    for (seed, on) in
        (first..first.saturating_add(flags.runs)).flat_map(|seed| flags.on.iter().map(move |on| (seed, *on)))
    {
        let options = |planted| Options { seed, length: Duration::from_secs(flags.seconds), planted };
        if flags.plant_each {
            for planted in Planted::value_variants() {
                right &= !one(on, options(Some(*planted))).await?;
            }
        } else {
            right &= one(on, options(flags.plant)).await?;
        }
    }
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One run; whether nothing was found.
async fn one(on: On, options: Options) -> Result<bool> {
    let place: Arc<dyn Place> = match on {
        On::Sqlite => Arc::new(Sqlite::new()?),
        On::Etcd => Etcd::start(1, 1, "/history").await?,
        On::Cluster => Etcd::start(3, 2, "/history").await?,
    };
    let planted = options.planted.map(|planted| format!(", planted: {planted:?}")).unwrap_or_default();
    let name = place.name();
    let (faults, summary) = run::run(place, options).await?;
    println!("{name}, seed {}{planted}: {summary}", options.seed);
    for fault in faults.0.iter().take(20) {
        println!("  FAULT: {fault}");
    }
    if faults.0.len() > 20 {
        println!("  and {} more", faults.0.len() - 20);
    }
    Ok(faults.0.is_empty())
}
