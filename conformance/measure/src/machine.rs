//! The machine: which CPU a process runs on, and what the disk's promise of durability takes here.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Moves this thread, and all that it starts from now on, to one CPU. With a single CPU there is nothing to choose.
pub fn pin(cpu: usize) -> Result<()> {
    if std::thread::available_parallelism()?.get() == 1 {
        return Ok(());
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(None, &only)?)
}

/// Runs `start` on a CPU: processes that it starts stay there, and we come back.
pub fn on_cpu<T>(cpu: usize, start: impl FnOnce() -> Result<T>) -> Result<T> {
    let mine = sched_getaffinity(None)?;
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only)?;
    let started = start();
    sched_setaffinity(None, &mine)?;
    started
}

/// Median time of an fdatasync after a small append, in the folder where the subjects write.
pub fn fdatasync(dir: &Path) -> Result<Duration> {
    let path = dir.join("fdatasync");
    let mut file = File::create(&path)?;
    let mut times = Vec::new();
    for _ in 0..200 {
        file.write_all(&[b'x'; 1228])?;
        let began = Instant::now();
        file.sync_data()?;
        times.push(began.elapsed());
    }
    std::fs::remove_file(path)?;
    times.sort_unstable();
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

/// The processor's name and how many CPUs there are.
pub fn describe() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or("unknown processor");
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cpus} CPUs", name.trim_start_matches([' ', '\t', ':']))
}
