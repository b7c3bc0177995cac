//! What one measurement yields, and the load that it was made with.

use std::collections::BTreeMap;

use serde::Serialize;

/// One measurement of one subject.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// Operations that were answered.
    pub operations: u64,
    /// Time that they took together.
    pub seconds: f64,
    /// CPU time of the counted processes for one operation.
    pub cpu_us: f64,
    /// Of which the server itself, without its etcd.
    pub server_cpu_us: f64,
    /// Median latency.
    pub p50_us: f64,
    /// 99th percentile of the latency.
    pub p99_us: f64,
    /// Resident memory of the server itself, afterwards.
    pub resident_mib: f64,
    /// Most resident memory of the server itself while it was measured.
    pub peak_mib: f64,
    /// What only some rows measure.
    pub more: BTreeMap<&'static str, f64>,
}

/// A number of a sample that goals speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleFigure {
    /// CPU time for one operation.
    Cpu,
    /// Median latency.
    P50,
    /// 99th percentile of the latency.
    P99,
    /// Operations a second.
    Rate,
    /// Resident memory, afterwards.
    Resident,
    /// One that only some rows measure.
    More(&'static str),
}

impl SampleFigure {
    /// The number.
    pub fn of(self, sample: &Sample) -> f64 {
        match self {
            Self::Cpu => sample.cpu_us,
            Self::P50 => sample.p50_us,
            Self::P99 => sample.p99_us,
            Self::Rate => sample.operations as f64 / sample.seconds,
            Self::Resident => sample.resident_mib,
            Self::More(name) => sample.more.get(name).copied().unwrap_or_default(),
        }
    }

    /// For people.
    pub fn name(self) -> String {
        match self {
            Self::Cpu => "CPU us per operation".to_owned(),
            Self::P50 => "p50 us".to_owned(),
            Self::P99 => "p99 us".to_owned(),
            Self::Rate => "operations a second".to_owned(),
            Self::Resident => "memory MiB".to_owned(),
            Self::More(name) => name.replace('_', " "),
        }
    }
}

/// Median, least and most.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct SampleSpread {
    /// Half are below.
    pub median: f64,
    /// Least.
    pub least: f64,
    /// Most.
    pub most: f64,
}

impl SampleSpread {
    /// Returns the spread of some numbers; zeros if there are none.
    pub fn of(numbers: impl Iterator<Item = f64>) -> Self {
        let mut all: Vec<f64> = numbers.collect();
        all.sort_by(f64::total_cmp);
        let at = |i: usize| all.get(i).copied().unwrap_or_default();
        Self { median: at(all.len() / 2), least: at(0), most: at(all.len().saturating_sub(1)) }
    }
}
