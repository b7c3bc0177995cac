//! `conformance/bench`: Drydock beside what else could serve the same objects, measured in one run on one machine.
//!
//! ```text
//!   rows       what is measured, one file each, and what it should come to
//!   subject    who is measured: processes and flags          client    how it is spoken to
//!   load       clients in a closed loop                     object    the objects, the same bytes for everyone
//!   run        rounds, subjects in turn                     sample    what one measurement yields
//!   machine    CPUs and the disk                            report    Markdown, JSON, SVG
//! ```

mod client;
mod load;
mod machine;
mod object;
mod report;
mod rows;
mod run;
mod sample;
mod subject;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use crate::subject::Who;

/// Measures Drydock (D) beside kube-apiserver with a CRD (K), sample-apiserver (G), raw etcd (E) and the libraries
/// under Drydock by themselves (F).
#[derive(Clone, Debug, Parser)]
#[command(name = "bench", version)]
pub struct Arguments {
    /// Rows to measure; all that there are if absent
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub rows: Vec<u8>,
    /// Who takes part
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values_t = Who::ALL)]
    pub servers: Vec<Who>,
    /// How often each subject is measured, in turn with the others
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Longest time of one measurement
    #[arg(long, default_value_t = 4)]
    pub seconds: u64,
    /// Most operations of one measurement
    #[arg(long, default_value_t = 20_000)]
    pub operations: u64,
    /// Objects in the rows that list
    #[arg(long, default_value_t = 50_000)]
    pub objects: usize,
    /// MiB of objects in the row that restarts
    #[arg(long, default_value_t = 1024)]
    pub stored_mib: usize,
    /// Subscribers in the rows of the status stream
    #[arg(long, default_value_t = 1000)]
    pub subscribers: usize,
    /// How long some of them do not read
    #[arg(long, default_value_t = 60)]
    pub stalled_seconds: u64,
    /// Measure Drydock with every access check on: who writes an object must be allowed to delete its pod
    #[arg(long)]
    pub access_checks: bool,
    /// CPU of the servers; the load has the other
    #[arg(long, default_value_t = 0)]
    pub server_cpu: usize,
    /// CPU of the load
    #[arg(long, default_value_t = 1)]
    pub load_cpu: usize,
    /// Folder of table, numbers and plot
    #[arg(long, default_value = "conformance/out")]
    pub out: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let machine = machine::describe();
    machine::pin(arguments.load_cpu)?;
    let results = run::all(&arguments, machine).await?;
    report::write(&results, &arguments.out)
}
