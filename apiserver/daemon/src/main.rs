//! drydock-apiserver: serves EvictionRequest and NodeMaintenance to a Kubernetes cluster as an aggregated API.
//!
//! Parse all configuration, then build, then bind, then run.

mod admission;
mod flags;
mod host;
mod options;
mod server;

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
    logs::start("info");
    match run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => drydock_command::fail("drydock-apiserver", error.as_ref()),
    }
}

fn run(flags: Flags) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(server::run(flags))
}
