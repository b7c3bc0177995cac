//! How subjects are started: what a row asks of them, and the command of each.

use std::path::PathBuf;

use anyhow::Result;
use drydock_testkit::host::TestHost;

use crate::Arguments;
use crate::machine;
use crate::rows::BenchRow;

/// How the subjects of a row are started.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The CPU of all servers.
    pub cpu: usize,
    /// Whether Drydock asks the host if the writer of an object may delete its pod.
    pub access_checks: bool,
    /// Whether servers have the limits on requests in flight that they have by default.
    pub default_limits: bool,
}

impl Settings {
    /// Those that the command line and a row ask for.
    pub fn of(arguments: &Arguments, row: &dyn BenchRow) -> Self {
        let Arguments { server_cpu: cpu, access_checks, .. } = *arguments;
        Self { cpu, access_checks, default_limits: row.default_limits() }
    }
}

/// A program with its flags, and the CPU on which it runs.
pub(super) struct ServerCommand {
    pub(super) program: PathBuf,
    pub(super) flags: Vec<String>,
    pub(super) cpu: usize,
}

impl ServerCommand {
    /// The same program, with flags of `instead` in place of those of the same names.
    pub(super) fn with(&self, instead: &[&str]) -> Self {
        let name = |flag: &str| flag.split_once('=').map_or(flag, |(name, _)| name).to_owned();
        let replaced: Vec<String> = instead.iter().map(|flag| name(flag)).collect();
        let kept = self.flags.iter().filter(|flag| !replaced.contains(&name(flag))).cloned();
        let flags = kept.chain(instead.iter().map(|flag| (*flag).to_owned())).collect();
        Self { program: self.program.clone(), flags, cpu: self.cpu }
    }

    pub(super) fn start(&self, host: &TestHost, name: &str) -> Result<()> {
        machine::on_cpu(self.cpu, || host.processes.start(name, &self.program, &self.flags))
    }
}
