//! drydock-controller-manager: acts on EvictionRequests and NodeMaintenances. Its subcommand `remove` removes Drydock, and
//! `end-turns` ends the turns of the interceptors of a maintenance's pods.
//!
//! Parse all configuration, then build, then bind, then run.

mod controllers;
mod direct;
mod end_turns;
mod flags;
mod remove;
mod run;

use std::process::ExitCode;

use drydock_command::logs;

use crate::flags::{Flags, ManagerCommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let flags = match Flags::read(std::env::args_os()) {
        Ok(flags) => flags,
        Err(refusal) => return refusal.print(),
    };
    // What a person runs prints its lines; only warnings are logged beside them.
    if flags.command.is_some() {
        logs::start_quietly();
    } else {
        logs::start(flags.verbosity);
    }
    match start(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => drydock_command::fail("drydock-controller-manager", error.as_ref()),
    }
}

fn start(flags: Flags) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match flags.command {
        Some(ManagerCommand::Remove(flags)) => runtime.block_on(remove::run(&flags)),
        Some(ManagerCommand::EndTurns(flags)) => runtime.block_on(end_turns::run(&flags)),
        None => runtime.block_on(run::run(flags)),
    }
}
