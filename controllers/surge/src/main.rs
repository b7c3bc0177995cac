//! drydock-surge-interceptor: gives a Deployment one replica more before its pod is evicted.
//!
//! Parse all configuration, then build, then bind, then run. What is decided, and why, is in `decide`.

mod decide;
mod decline;

mod amount;
mod autoscaler;
mod deployment;
mod scale;

mod replica_set;
mod turns;
mod workloads;

mod controller;
mod register;

mod flags;
mod metrics;
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
        Err(error) => drydock_command::fail("drydock-surge-interceptor", error.as_ref()),
    }
}

fn start(flags: Flags) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run::run(flags))
}
