//! drydock-apiserver serves EvictionRequest and NodeMaintenance to a Kubernetes cluster as an aggregated API. Its
//! subcommands work on the stored data: backup, restore, check, migrate, reclaim, fencing-tokens.
//!
//! Parse all configuration, then build, then bind, then run.

mod admission;
mod data;
mod fencing_tokens;
mod flags;
mod migrate;
mod server;
mod stream;

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
    // A command that works on the data prints one line; only warnings are logged beside it.
    if flags.command.is_some() {
        logs::start_quietly();
    } else {
        logs::start(flags.verbosity);
    }
    match run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => drydock_command::fail("drydock-apiserver", error.as_ref()),
    }
}

fn run(flags: Flags) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match flags.command {
        Some(command) => runtime.block_on(data::run(command)),
        None => runtime.block_on(server::run(flags)),
    }
}
