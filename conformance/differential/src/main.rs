//! `differential` runs the sequences against a host of its own and against us, and says where we differ.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Parser;
use drydock_differential::injected::InjectedDifference;
use drydock_differential::sequence::Sequence;
use drydock_differential::setup::ServerSetup;
use drydock_differential::{report, sequences, suite};

#[derive(Parser)]
struct Flags {
    /// Only sequences whose area or name contains this; may be given again
    #[arg(value_name = "TEXT")]
    only: Vec<String>,
    /// Prints the names and runs nothing
    #[arg(long)]
    list: bool,
    /// Prints every field that differs on a line of its own, as the list of deliberate differences has them
    #[arg(long)]
    fields: bool,
    /// Seed of the generated sequences
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Puts a fault into all that we answer, which must be found
    #[arg(long, hide = true)]
    inject: Option<InjectedDifference>,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let flags = Flags::parse();
    println!("seed of the generated sequences: {}", flags.seed);
    let all = sequences::all(flags.seed);
    are_named(&all)?;
    let chosen: Vec<Sequence> = all.into_iter().filter(|sequence| is_chosen(sequence, &flags.only)).collect();
    if flags.list {
        chosen.iter().for_each(|sequence| println!("{}", sequence.title()));
        return Ok(ExitCode::SUCCESS);
    }
    let setup = ServerSetup::start().await?;
    let outcomes = suite::run_all(&setup, &chosen, flags.inject).await;
    if flags.fields {
        report::print_fields(&outcomes);
    }
    let mut good = true;
    if flags.only.is_empty() {
        good &= report::enough(&chosen);
        good &= report::finds_faults(&setup, &outcomes);
        good &= report::all_differences_occur(&outcomes);
    }
    // Last, where a reader of a long log looks first.
    good &= report::report(&outcomes);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_chosen(sequence: &Sequence, only: &[String]) -> bool {
    let area = sequence.area.to_string();
    only.is_empty() || only.iter().any(|text| area == *text || sequence.name.contains(text))
}

fn are_named(sequences: &[Sequence]) -> Result<()> {
    let mut names: Vec<String> = sequences.iter().map(Sequence::title).collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        ensure!(pair[0] != pair[1], "two sequences are called {:?}", pair[0]);
    }
    Ok(())
}
