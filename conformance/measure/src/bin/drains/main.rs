//! `conformance/bench drains`: how fast Drydock drains, and at what cost. One NodeMaintenance over many nodes, beside a
//! bare loop of evictions and the floor of our own cost, each on a fresh host.
//!
//! ```text
//!   form            which budgets guard the pods               workload   nodes, pods, budgets
//!   subject         who drains: Drydock, or one of these two   trial      one drain, measured
//!   eviction_loop   evictions alone                            floor      evictions, and our API server's requests
//!   figures         the drain in the host's audit log          cpu        CPU time of the processes
//!   report          table, goals, drains.json
//! ```

mod form;

mod eviction_loop;
mod floor;
mod subject;
mod workload;

mod cpu;
mod figures;
mod trial;

mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Parser;
use drydock_testkit::observer::ObserverCommand;

use self::floor::FloorArguments;
use self::form::BudgetForm;
use self::subject::DrainSubject;
use self::workload::DEPLOYMENTS;

/// Measures one NodeMaintenance over many nodes on a real Kubernetes control plane with imaginary kubelets, beside a bare
/// loop that asks the host for the same evictions.
#[derive(Parser)]
#[command(name = "drains", args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    arguments: Arguments,
}

/// As our programs have it: the floor is compared with them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The hidden commands with which this program starts itself once more.
#[derive(clap::Subcommand)]
enum Part {
    #[command(flatten)]
    Observer(ObserverCommand),
    /// Drain as the floor does.
    #[command(hide = true)]
    Floor(FloorArguments),
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let line = CommandLine::parse();
    match line.part {
        Some(Part::Observer(part)) => part.run().await,
        Some(Part::Floor(part)) => part.run().await,
        None => run(line.arguments).await,
    }
}

/// What the command line asks for.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Which budgets guard the pods: none, twenty (one for each Deployment), one (over all)
    #[arg(long, value_enum, value_name = "FORMS", value_delimiter = ',', default_values_t = BudgetForm::ALL)]
    pub forms: Vec<BudgetForm>,
    /// Who drains: drydock, loop (of evictions alone), floor (evictions, and the requests to our API server)
    #[arg(long, value_enum, value_name = "SUBJECTS", value_delimiter = ',', default_values_t = DrainSubject::ALL)]
    pub subjects: Vec<DrainSubject>,
    /// How often each subject drains, in turn with the others
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Pods on the drained nodes, in 20 Deployments of the same size
    #[arg(long, default_value_t = 600)]
    pub pods: usize,
    /// Drained nodes; there are as many others, with room for what replaces the pods
    #[arg(long, default_value_t = 20)]
    pub nodes: usize,
    /// Percent of a budget's pods that may be away. The kubelets need about two seconds for a new pod: with 90 it is the
    /// host that sets the pace, with much less the budgets
    #[arg(long, value_name = "PERCENT", default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=99))]
    pub room: u8,
    /// Where drains.json goes
    #[arg(long, value_name = "DIR", default_value = "conformance/out")]
    pub out: PathBuf,
}

/// Pods that a node takes, of the 110 that it says.
const MOST_ON_A_NODE: usize = 100;

/// Measures and prints. Fails if a pod was left behind, if a budget was broken, if an owner got an event about a pod that
/// goes by itself, or if more was written for each pod than the design explains. Ctrl-C ends it.
pub async fn run(arguments: Arguments) -> Result<ExitCode> {
    tokio::select! {
        result = measure(&arguments) => result,
        stopped = tokio::signal::ctrl_c() => {
            stopped?;
            eprintln!("stopping");
            Ok(ExitCode::from(130))
        }
    }
}

async fn measure(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { pods, nodes, rounds, subjects, .. } = arguments;
    ensure!(*rounds > 0, "--rounds: at least 1");
    ensure!(*pods > 0 && pods % DEPLOYMENTS == 0, "--pods: a multiple of {DEPLOYMENTS}");
    ensure!(*nodes > 0 && *pods <= nodes * MOST_ON_A_NODE, "--nodes: a node takes {MOST_ON_A_NODE} pods");
    let mut trials = Vec::new();
    for round in 0..*rounds {
        for form in &arguments.forms {
            for subject in DrainSubject::in_turn(round).into_iter().filter(|one| subjects.contains(one)) {
                eprintln!("==> round {}: {subject}, {form}", round + 1);
                let trial = trial::run(subject, *form, arguments).await?;
                eprintln!("    {}", trial.summary());
                trials.push(trial);
            }
        }
    }
    // Goals compare Drydock with the loop: without one of them there is nothing to report.
    if [DrainSubject::Drydock, DrainSubject::Loop].iter().all(|one| subjects.contains(one)) {
        report::write(arguments, &trials)?;
    }
    let failed = trials.iter().any(|trial| !trial.is_good());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
