//! Searches for data that a crash may lose: `conformance/soak crash` runs it.
//!
//! ```text
//!   kill     a process writes, is killed at a named point, and all that it reported must be in its store
//!   power    a store on a disk that loses what was not synced, and whose writes and syncs fail before
//! ```
//!
//! Each round is a new store and a seed; a round that fails names them.

mod child;
mod kill;
mod model;
mod power;
mod tally;
mod work;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};
use tempfile::TempDir;

use tally::Tally;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    what: CrashKind,
}

#[derive(Debug, Subcommand)]
enum CrashKind {
    /// Both kinds of crashes at a time
    All(CrashRun),
    /// Processes that are killed
    Kill(CrashRun),
    /// A disk that loses power
    Power(CrashRun),
    /// A disk that is full for a while
    Full,
    /// The process that is killed
    #[command(hide = true)]
    Child(child::Child),
}

#[derive(Clone, Debug, clap::Args)]
struct CrashRun {
    /// How long
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Of the first round; the clock's if absent. One round alone is made of a seed that is given
    #[arg(long)]
    seed: Option<u64>,
    /// A fault that the run must find
    #[arg(long, hide = true)]
    inject: Option<InjectedFault>,
}

/// Faults of the test itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InjectedFault {
    /// A write that was acknowledged is not there afterwards.
    LostWrite,
    /// A watch delivers two events in the wrong order.
    ReorderedEvent,
    /// A write is acknowledged before it is made.
    EarlyAck,
}

fn main() -> ExitCode {
    match run(Arguments::parse().what) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("crash: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(what: CrashKind) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match what {
        CrashKind::All(run) => all(&run),
        CrashKind::Kill(run) => {
            rounds("kill", &run, |seed, tally| runtime.block_on(kill::round(seed, run.inject, tally)))
        }
        CrashKind::Power(run) => {
            rounds("power", &run, |seed, tally| runtime.block_on(power::round(seed, run.inject, tally)))
        }
        CrashKind::Full => runtime.block_on(power::full_disk()).map(|()| ExitCode::SUCCESS),
        CrashKind::Child(child) => runtime.block_on(child::run(child)).map(|()| ExitCode::SUCCESS),
    }
}

/// Both, each in a process of its own.
fn all(run: &CrashRun) -> Result<ExitCode> {
    let start = |what| {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(what).arg(format!("--seconds={}", run.seconds));
        command.args(run.seed.map(|seed| format!("--seed={seed}")));
        command.spawn()
    };
    let (mut kill, mut power) = (start("kill")?, start("power")?);
    let (kill, power) = (kill.wait()?, power.wait()?);
    Ok(if kill.success() && power.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One round after the other until the time is over.
fn rounds(
    name: &str,
    run: &CrashRun,
    mut round: impl FnMut(u64, &mut Tally) -> Result<()>,
) -> Result<ExitCode> {
    let clock =
        || std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64 >> 8 & 0xffff_ffff);
    let (first, mut tally, began) = (run.seed.unwrap_or_else(clock), Tally::default(), Instant::now());
    println!("{name}: seeds from {first} on");
    for seed in (first..).step_by(1000) {
        if let Err(error) = round(seed, &mut tally) {
            println!("{name}: FOUND with seed {seed}: {error:#}");
            let program = std::env::args().next().unwrap_or_default();
            println!("{name}: try it again: {program} {name} --seed={seed}");
            return Ok(ExitCode::FAILURE);
        }
        if run.seed.is_some() || began.elapsed() >= Duration::from_secs(run.seconds) {
            break;
        }
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    println!("{name}: nothing lost; {:.0} crashes a minute\n{tally}", tally.crashes() as f64 / minutes);
    Ok(ExitCode::SUCCESS)
}

/// A folder of a round's own, in memory if there is such a place: syncs are what is tested, not the disk below.
fn folder() -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    Ok(if memory.is_dir() { TempDir::new_in(memory)? } else { TempDir::new()? })
}
