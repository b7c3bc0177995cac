//! `conformance/bench drains`: how fast Drydock drains, and at what cost.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use drydock_testkit::drains;
use drydock_testkit::observer;

/// Measures one NodeMaintenance over many nodes on a real Kubernetes control plane with imaginary kubelets, beside a bare
/// loop that asks the host for the same evictions.
#[derive(Parser)]
#[command(name = "drains", args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    part: Option<observer::ObserverCommand>,
    #[command(flatten)]
    arguments: drains::Arguments,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let line = CommandLine::parse();
    match line.part {
        Some(part) => part.run().await,
        None => drains::run(line.arguments).await,
    }
}
