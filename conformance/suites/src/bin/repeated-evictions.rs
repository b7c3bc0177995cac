//! Reads the audit logs of hosts, and fails if our controller manager was granted the eviction of one pod twice.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use drydock_testkit::host::audit;

/// Looks for pods that the controller manager evicted more than once.
#[derive(Parser)]
struct Arguments {
    /// Folder with the audit logs of hosts
    #[arg(value_name = "DIR")]
    logs: PathBuf,
}

fn main() -> Result<ExitCode> {
    let Arguments { logs } = Arguments::parse();
    let (mut evictions, mut repeated) = (0_usize, 0_usize);
    for log in std::fs::read_dir(&logs).with_context(|| logs.display().to_string())? {
        let path = log?.path();
        let requests = audit::requests(&path)?;
        evictions += requests.iter().filter(|r| r.is_about("pods/eviction") && r.succeeded()).count();
        for uid in audit::evicted_twice(&requests) {
            println!("evicted more than once: {uid}, in {}", path.display());
            repeated += 1;
        }
    }
    ensure!(evictions > 0, "no eviction in {}", logs.display());
    println!("{evictions} evictions, {repeated} pods evicted more than once");
    Ok(if repeated == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
