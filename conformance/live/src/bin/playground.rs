//! `conformance/playground`: a cluster to try Drydock in.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use drydock_conformance::playground::{self, observer};

/// A real Kubernetes control plane with imaginary nodes, Drydock in it, and a maintenance to watch.
#[derive(Parser)]
#[command(name = "playground", args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    arguments: playground::Arguments,
}

#[derive(Subcommand)]
enum Part {
    /// Watch a namespace's budgets until stdin ends.
    #[command(hide = true)]
    Observe {
        #[arg(long)]
        kubeconfig: PathBuf,
        #[arg(long)]
        namespace: String,
    },
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let line = CommandLine::parse();
    match line.part {
        Some(Part::Observe { kubeconfig, namespace }) => observer::observe(&kubeconfig, &namespace).await,
        None => playground::run(line.arguments).await,
    }
}
