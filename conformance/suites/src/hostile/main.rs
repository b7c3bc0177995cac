//! `hostile` attacks Drydock in a real host with the rights of an ordinary tenant, and judges whether bystanders were
//! harmed.
//!
//! ```text
//! attacks --> client --> drydock-apiserver, or the host's aggregator before it
//! bystanders: probes, system:masters, another tenant, a drain      judge --> report
//! ```

mod attack;
mod attacks;
mod bystanders;
mod client;
mod context;
mod judge;
mod report;
mod run;
mod setup;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Parser;
use drydock_testkit::drydock::StorageChoice;

use crate::attack::Attack;
use crate::context::AttackSize;

/// Attacks Drydock as an ordinary tenant would, one attack after the other, beside bystanders who must not be harmed.
#[derive(Parser)]
#[command(
    after_help = "DRYDOCK_BIN names the folder of the programs that are attacked; those beside this one if unset.\n\
                        DRYDOCK_HOST_BIN names that of the host's; it is built if unset.\n\
                        DRYDOCK_KEEP=1 keeps data and logs."
)]
struct Flags {
    /// Only attacks of these names
    #[arg(value_name = "NAME")]
    only: Vec<String>,
    /// Prints names and what they do, and runs nothing
    #[arg(long)]
    list: bool,
    /// The long forms: 20,000 requests, 10,000 pods, and each attack again until the minutes are over
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Seconds that an attack lasts
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Where Drydock keeps its objects
    #[arg(long, value_enum, default_value_t)]
    storage: StorageChoice,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let flags = Flags::parse();
    let chosen = chosen(&flags.only)?;
    if flags.list {
        chosen.iter().for_each(|attack| println!("{:<24} {}", attack.name, attack.what));
        return Ok(ExitCode::SUCCESS);
    }
    let size = if flags.minutes.is_some() { AttackSize::Long } else { AttackSize::Short };
    tokio::select! {
        good = run::run(&chosen, &flags, size) => Ok(if good? { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        stopped = tokio::signal::ctrl_c() => {
            stopped?;
            Ok(ExitCode::from(130))
        }
    }
}

fn chosen(only: &[String]) -> Result<Vec<Attack>> {
    let all = attacks::all();
    for (at, attack) in all.iter().enumerate() {
        ensure!(all[..at].iter().all(|other| other.name != attack.name), "two are called {}", attack.name);
    }
    for name in only {
        ensure!(
            all.iter().any(|attack| attack.name == *name),
            "no attack {name}; --list tells which there are"
        );
    }
    Ok(all.into_iter().filter(|a| only.is_empty() || only.iter().any(|name| a.name == *name)).collect())
}
