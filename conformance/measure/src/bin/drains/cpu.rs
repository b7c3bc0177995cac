//! CPU time of the host's processes and of ours.

use std::collections::BTreeMap;

use anyhow::Result;
use drydock_testkit::drydock::PROGRAMS;
use drydock_testkit::host::TestHost;
use drydock_testkit::proc;
use serde::Serialize;

use super::floor;

/// The host's processes. The last plays the kubelets, for all subjects alike.
const HOSTS: [&str; 5] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"];
/// Our processes, and the one that stands for our controller manager.
const OURS: [&str; 3] = [PROGRAMS[0], PROGRAMS[1], floor::PROCESS];

/// Seconds by process.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Cpu(BTreeMap<&'static str, f64>);

impl Cpu {
    /// Returns the CPU time, since their start, of the processes that were started.
    pub fn now(host: &TestHost) -> Result<Cpu> {
        let names = HOSTS.into_iter().chain(OURS);
        let pids = names.filter_map(|name| Some((name, host.processes.pid(name)?)));
        pids.map(|(name, pid)| Ok((name, proc::cpu(pid)?.as_secs_f64()))).collect::<Result<_>>().map(Cpu)
    }

    /// Returns the CPU time since `before`.
    pub fn since(&self, before: &Cpu) -> Cpu {
        let spent = |(name, seconds): (&&'static str, &f64)| {
            (*name, seconds - before.0.get(name).copied().unwrap_or_default())
        };
        Cpu(self.0.iter().map(spent).collect())
    }

    /// Returns this CPU time without that of `seconds` in which nothing happened. `idle` is that of each such second.
    pub fn without_idle(&self, idle: &Cpu, seconds: f64) -> Cpu {
        let busy = |(name, spent): (&&'static str, &f64)| {
            (*name, spent - seconds * idle.0.get(name).copied().unwrap_or_default())
        };
        Cpu(self.0.iter().map(busy).collect())
    }

    /// Returns the lesser CPU time of each process.
    pub fn least(&self, other: &Cpu) -> Cpu {
        let lesser = |(name, spent): (&&'static str, &f64)| {
            (*name, spent.min(other.0.get(name).copied().unwrap_or_default()))
        };
        Cpu(self.0.iter().map(lesser).collect())
    }

    /// Returns this CPU time by each of so many seconds.
    pub fn each_of(&self, seconds: f64) -> Cpu {
        Cpu(self.0.iter().map(|(name, spent)| (*name, spent / seconds)).collect())
    }

    /// Returns the CPU time of the host's processes.
    pub fn hosts(&self) -> f64 {
        self.of(&HOSTS)
    }

    /// Returns the CPU time of our processes, or of the floor's.
    pub fn ours(&self) -> f64 {
        self.of(&OURS)
    }

    fn of(&self, names: &[&str]) -> f64 {
        names.iter().filter_map(|name| self.0.get(name)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_since_then_is_split_by_whose_process_it_is() {
        let at = |etcd, ours| Cpu(BTreeMap::from([("etcd", etcd), (PROGRAMS[0], ours)]));
        let spent = at(3.0, 1.5).since(&at(1.0, 1.0));
        assert_eq!((spent.hosts(), spent.ours()), (2.0, 0.5));
        let idle = at(0.4, 0.3).least(&at(0.5, 0.2)).each_of(2.0);
        let busy = spent.without_idle(&idle, 5.0);
        assert_eq!((busy.hosts(), busy.ours()), (1.0, 0.0));
    }
}
