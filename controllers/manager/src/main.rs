//! drydock-controller-manager: acts on EvictionRequests and NodeMaintenances.
//!
//! Parse all configuration, then build, then bind, then run.

mod controllers;
mod direct;
mod flags;
mod run;

use std::process::ExitCode;

use drydock_command::logs;

use crate::flags::Flags;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let flags = match Flags::read(std::env::args_os()) {
        Ok(flags) => flags,
        Err(refusal) => return refusal.print(),
    };
    logs::start(flags.verbosity);
    match start(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => drydock_command::fail("drydock-controller-manager", error.as_ref()),
    }
}

fn start(flags: Flags) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run::run(flags))
}
