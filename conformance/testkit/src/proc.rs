//! CPU time and memory of a process, from the kernel (proc_pid_stat(5), proc_pid_status(5)).

use std::time::Duration;

use anyhow::{Context, Result};

/// Returns user and system time of a process, of all its threads, ended ones too.
pub fn cpu(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .context("CPU time is read from /proc: run this on Linux")?;
    Ok(Duration::from_secs_f64(ticks(&stat) as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// Fields 14 and 15. They are counted from behind the name, which may contain spaces and brackets.
fn ticks(stat: &str) -> u64 {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
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
///
/// # Errors
/// The process has ended.
pub fn memory(pid: u32) -> Result<ResidentMemory> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line?.split_whitespace().next()?.parse().ok()
    };
    let resident = field("VmRSS:").with_context(|| format!("process {pid} has ended"))?;
    Ok(ResidentMemory { resident, peak: field("VmHWM:").unwrap_or_default() })
}

/// Resets the peak of resident memory (proc_pid_clear_refs(5)).
pub fn forget_peak(pid: u32) -> Result<()> {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5")
        .context("the peak of memory is reset by /proc: run this on Linux")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_brackets_does_not_move_the_fields() {
        assert_eq!(ticks("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 30 12 99 99"), 42);
    }
}
