//! `conformance/playground`: a cluster to try Drydock in.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use drydock_testkit::observer;

/// A real Kubernetes control plane with imaginary nodes, Drydock in it, and a maintenance to watch.
#[derive(Parser)]
#[command(name = "playground", args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    part: Option<observer::ObserverCommand>,
    #[command(flatten)]
    arguments: drydock_walkthrough::Arguments,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let line = CommandLine::parse();
    match line.part {
        Some(part) => part.run().await,
        None => drydock_walkthrough::run(line.arguments).await,
    }
}
