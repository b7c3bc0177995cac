//! What is left of a run: a table and the goals for people, `scale.json` for programs.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::usage::{Cost, ProgramUsage};

/// All figures.
#[derive(Clone, Debug, Serialize)]
pub struct ScaleReport {
    /// EvictionRequests.
    pub requests: usize,
    /// Of them blocked by budgets.
    pub blocked: usize,
    /// Seconds in which the host's objects were created.
    pub pods_seconds: f64,
    /// Seconds in which the requests were created.
    pub created_seconds: f64,
    /// Seconds from the first request until each was in its turn or blocked.
    pub turns_seconds: f64,
    /// Our programs then.
    pub filled: ProgramUsage,
    /// A time without changes.
    pub idle: Cost,
    /// Reports of interceptors, and what they cost.
    pub changes: (usize, Cost),
    /// Seconds of a list of all, whole and in pages of 500.
    pub list_seconds: [f64; 2],
    /// Bytes of a request in JSON, by the first 500.
    pub request_bytes: f64,
    /// Budgets that opened, and what that cost.
    pub openings: (usize, Cost),
    /// Milliseconds from each of these openings to the host's receipt of the eviction, in order.
    pub latencies: Vec<f64>,
    /// Seconds from the start of the controller manager to the first eviction.
    pub restart_seconds: f64,
    /// UIDs that were evicted more than once.
    pub twice: Vec<String>,
    /// Evicted pods whose interceptor had not ended its turn.
    pub of_held_pods: usize,
}

impl ScaleReport {
    /// Nothing was evicted twice, or out of turn.
    pub fn is_good(&self) -> bool {
        self.twice.is_empty() && self.of_held_pods == 0
    }

    /// Prints the table, and writes the JSON.
    pub fn write(&self, out: &Path) -> Result<()> {
        println!("{}", self.markdown());
        let path = out.join("scale.json");
        std::fs::create_dir_all(out).with_context(|| out.display().to_string())?;
        std::fs::write(&path, serde_json::to_vec_pretty(self)?)
            .with_context(|| path.display().to_string())?;
        eprintln!("==> written to {}", path.display());
        Ok(())
    }

    /// The API server's memory by the JSON of all requests.
    fn memory_by_bytes(&self) -> f64 {
        self.filled.resident_mib[0] * 1024.0 * 1024.0 / (self.request_bytes * self.requests as f64)
    }

    fn markdown(&self) -> String {
        let mut out = format!(
            "# {} EvictionRequests, {} of them blocked by budgets\n\n| | API server | controller manager |\n|---|---|---|\n",
            self.requests, self.blocked
        );
        // Writing to a String does not fail.
        let mut row = |what: &str, [server, manager]: [f64; 2]| {
            let _ = writeln!(out, "| {what} | {server:.3} | {manager:.3} |");
        };
        row("MiB when filled", self.filled.resident_mib);
        row("MiB at the peak until then", self.filled.peak_mib);
        row("MiB at the end", self.openings.1.usage.resident_mib);
        row("CPU cores without changes", self.idle.cpu.map(|cpu| cpu / self.idle.seconds));
        let each = |(count, cost): &(usize, Cost)| cost.cpu.map(|cpu| 1000.0 * cpu / (*count).max(1) as f64);
        row("CPU ms a report of an interceptor", each(&self.changes));
        row("CPU ms a budget that opens", each(&self.openings));
        let queued = [&self.filled, &self.idle.usage, &self.changes.1.usage, &self.openings.1.usage];
        let queued: Vec<String> = queued.iter().map(|usage| usage.queued.to_string()).collect();
        let [p50, p99] = [0.5, 0.99].map(|share| percentile(&self.latencies, share));
        let [whole, pages] = self.list_seconds;
        let _ = write!(
            out,
            "\nFilled in {:.0} s: pods {:.0} s, requests {:.0} s, until each was in its turn or blocked {:.0} s.\n\
             Queued when filled, after idling, after the reports, after the openings: {}.\n\
             From a budget's opening to its eviction: p50 {p50:.1} ms, p99 {p99:.1} ms beside the host's own answer (goal 100).\n\
             From the start of the controller manager to its first eviction: {:.2} s (goal 5).\n\
             List of all: {whole:.2} s, in pages of 500 {pages:.2} s.\n\
             A request has {:.0} bytes of JSON: the API server held {:.2} times those of all when filled (goal 1.6).\n\
             Evicted twice: {}. Evicted out of turn: {}.\n",
            self.pods_seconds + self.turns_seconds,
            self.pods_seconds,
            self.created_seconds,
            self.turns_seconds,
            queued.join(", "),
            self.restart_seconds,
            self.request_bytes,
            self.memory_by_bytes(),
            self.twice.len(),
            self.of_held_pods,
        );
        out
    }
}

/// The value that this share of them does not exceed; they are in order.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let sorted: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!([0.5, 0.99, 1.0].map(|share| percentile(&sorted, share)), [100.0, 198.0, 200.0]);
        assert_eq!(percentile(&[7.0], 0.99), 7.0);
        assert_eq!(percentile(&[], 0.99), 0.0);
    }
}
