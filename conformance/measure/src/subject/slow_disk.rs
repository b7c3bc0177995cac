//! A disk whose fsync takes a millisecond more: the program runs with a small library before the C library
//! (ld.so(8), LD_PRELOAD), which waits before each one.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use drydock_testkit::host::TestHost;

use super::ServerCommand;

const SOURCE: &str = include_str!("slow_disk.c");

/// The command, on such a disk.
pub fn under(host: &TestHost, command: ServerCommand) -> Result<ServerCommand> {
    let library = library(host)?;
    let mut flags = vec![format!("LD_PRELOAD={}", library.display())];
    flags.push(command.program.display().to_string());
    flags.extend(command.flags);
    // env(1) becomes the program: the process is the same.
    Ok(ServerCommand { program: "env".into(), flags, cpu: command.cpu })
}

fn library(host: &TestHost) -> Result<PathBuf> {
    let (source, library) = (host.dir.join("slow_disk.c"), host.dir.join("slow_disk.so"));
    std::fs::write(&source, SOURCE)?;
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&library, &source])
        .status()
        .context("cc does not start: install a C compiler")?;
    ensure!(built.success(), "cc cannot build {}", source.display());
    Ok(library)
}
