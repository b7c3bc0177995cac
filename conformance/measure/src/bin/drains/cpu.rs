//! CPU time of the host's processes and of ours (proc_pid_stat(5)).

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use drydock_testkit::drydock::PROGRAMS;
use drydock_testkit::host::Host;
use serde::Serialize;

/// The host's processes. The last plays the kubelets, for all subjects alike.
const HOSTS: [&str; 5] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"];

/// Seconds by process.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Cpu(BTreeMap<&'static str, f64>);

impl Cpu {
    /// Since their start, of those that were started.
    pub fn now(host: &Host) -> Result<Cpu> {
        let names = HOSTS.into_iter().chain(PROGRAMS);
        let pids = names.filter_map(|name| Some((name, host.processes.pid(name)?)));
        pids.map(|(name, pid)| Ok((name, seconds(pid)?))).collect::<Result<_>>().map(Cpu)
    }

    /// What came since then.
    pub fn since(&self, before: &Cpu) -> Cpu {
        let spent = |(name, seconds): (&&'static str, &f64)| {
            (*name, seconds - before.0.get(name).copied().unwrap_or_default())
        };
        Cpu(self.0.iter().map(spent).collect())
    }

    /// The host's.
    pub fn hosts(&self) -> f64 {
        self.of(&HOSTS)
    }

    /// Ours.
    pub fn ours(&self) -> f64 {
        self.of(&PROGRAMS)
    }

    fn of(&self, names: &[&str]) -> f64 {
        names.iter().filter_map(|name| self.0.get(name)).sum()
    }
}

/// User and system time of a process, all threads, dead ones too.
fn seconds(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .context("CPU time is read from /proc: run this on Linux")?;
    Ok(ticks(&stat) as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Fields 14 and 15, counted from behind the name, which may hold anything.
fn ticks(stat: &str) -> u64 {
    let behind = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    behind.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_brackets_does_not_move_the_fields() {
        assert_eq!(ticks("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 30 12 99 99"), 42);
    }

    #[test]
    fn what_came_since_is_told_by_whose_process_it_is() {
        let at = |etcd, ours| Cpu(BTreeMap::from([("etcd", etcd), (PROGRAMS[0], ours)]));
        let spent = at(3.0, 1.5).since(&at(1.0, 1.0));
        assert_eq!((spent.hosts(), spent.ours()), (2.0, 0.5));
    }
}
