//! Clients at random, faults in between, and a check of all that they recorded: whether the store keeps its promises.
//!
//! ```text
//!   clients, watchers ──> storage, three layers on two servers ──> SQLite or etcd <── faults
//!          │ record
//!          ▼
//!       History ──> model (the log of all writes) ──> check: writes, order, reads, watches, linearizability
//! ```
//!
//! A seed gives the same requests and faults again; the scheduler decides which of them overlap.

mod check;
mod context;
mod inject;
mod object;
mod place;
mod record;
mod recorder;
mod run;
mod work;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};

use check::{CheckCounts, FoundFaults};
use inject::FaultKind;
use place::StorePlace;
use place::etcd::Etcd;
use place::servers::Servers;
use place::sqlite::Sqlite;
use run::Options;

/// Stands before every key in etcd.
const PREFIX: &str = "/history";

/// Looks for faults of the store by what its clients see.
#[derive(Parser)]
struct Flags {
    /// Where objects are kept; may be given again
    #[arg(long, value_enum, default_values = ["sqlite", "etcd", "cluster", "servers"])]
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
    /// Takes a read for a fault too that failed at its deadline, as on a machine that does nothing else
    #[arg(long)]
    deadlines: bool,
    #[arg(long, value_enum, hide = true)]
    inject: Option<FaultKind>,
    /// Injects each fault once, and fails if one is not found
    #[arg(long, hide = true)]
    inject_each: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum On {
    Sqlite,
    Etcd,
    /// Three members of etcd, used by two servers within this process
    Cluster,
    /// The same, used by two real API servers
    Servers,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let flags = Flags::parse();
    let injects = flags.inject_each || flags.inject.is_some();
    let servers = flags.on.iter().any(|on| matches!(on, On::Servers));
    ensure!(!(injects && servers), "--on servers: nothing can be injected into real API servers");
    let first = flags.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let (mut right, mut total) = (true, CheckCounts::default());
    for seed in first..first.saturating_add(flags.runs) {
        for on in &flags.on {
            for injected in flags.injected() {
                let (length, judges_deadlines) = (Duration::from_secs(flags.seconds), flags.deadlines);
                let mut options = Options { seed, length, injected, judges_deadlines };
                let mut is_right = false;
                // An injected fault shows only if a client happens to read there: it gets three chances.
                for _ in 0..if flags.inject_each { 3 } else { 1 } {
                    let (faults, counts) = one(*on, options).await?;
                    total.add(&counts);
                    is_right = faults.0.is_empty() != flags.inject_each;
                    if is_right {
                        break;
                    }
                    options.seed += 1;
                }
                right &= is_right;
            }
        }
    }
    println!("in all: {total}");
    let verdict = match (flags.inject_each, right) {
        (false, true) => "no fault was found",
        (false, false) => "faults were found: see above",
        (true, true) => "every injected fault was found",
        (true, false) => "an injected fault was not found",
    };
    println!("{verdict}");
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Flags {
    fn injected(&self) -> Vec<Option<FaultKind>> {
        match self.inject_each {
            true => FaultKind::value_variants().iter().copied().map(Some).collect(),
            false => vec![self.inject],
        }
    }
}

/// One run, and what was found in it.
async fn one(on: On, options: Options) -> Result<(FoundFaults, CheckCounts)> {
    let injected = options.injected.map(|injected| format!(", injected: {injected:?}")).unwrap_or_default();
    println!("{}, seed {}{injected}", on.name(), options.seed);
    let (faults, counts) = on.run(options).await?;
    println!("  {counts}");
    let shown = if options.injected.is_some() { 1 } else { 20 };
    for fault in faults.0.iter().take(shown) {
        println!("  FAULT: {fault}");
    }
    if faults.0.len() > shown {
        println!("  and {} more", faults.0.len() - shown);
    }
    Ok((faults, counts))
}

impl On {
    fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Etcd => "one etcd",
            Self::Cluster => "three members of etcd",
            Self::Servers => "two API servers on three members of etcd",
        }
    }

    async fn run(self, options: Options) -> Result<(FoundFaults, CheckCounts)> {
        let place: Arc<dyn StorePlace> = match self {
            Self::Sqlite => Arc::new(Sqlite::new()?),
            Self::Etcd => Etcd::start(1, 1, PREFIX).await?,
            Self::Cluster => Etcd::start(3, 2, PREFIX).await?,
            Self::Servers => {
                let etcd = Etcd::start(3, 1, PREFIX).await?;
                let servers = Servers::start(etcd.urls(), PREFIX, 2).await?;
                return run::run_servers(etcd, servers, options).await;
            }
        };
        run::run(place, options).await
    }
}
