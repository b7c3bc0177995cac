//! CPU time and memory of a process, from the kernel (proc_pid_stat(5), proc_pid_status(5)).

use std::time::Duration;

use anyhow::{Context, Result};

/// User and system time of a process, all threads, dead ones too.
pub fn cpu(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .context("CPU time is read from /proc: run this on Linux")?;
    // The name may hold anything; fields 14 and 15 are counted from behind it.
    let behind = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = behind.split_whitespace().skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// Resident memory of a process in KiB, now and at its peak.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResidentMemory {
    /// Now.
    pub resident: u64,
    /// Most since the start, or since [`forget_peak`].
    pub peak: u64,
}

/// The memory of a process.
pub fn memory(pid: u32) -> Result<ResidentMemory> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse().ok()).unwrap_or_default()
    };
    Ok(ResidentMemory { resident: field("VmRSS:"), peak: field("VmHWM:") })
}

/// Starts the peak anew.
pub fn forget_peak(pid: u32) -> Result<()> {
    Ok(std::fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}
