//! Row 10: row 9 while a tenth of the watchers does not read.

use anyhow::Result;
use async_trait::async_trait;

use super::fan_out::{FanOut, WATCHERS, Watchers};
use super::{BenchRow, FigureGoal, Subject};
use crate::load::LoadLimit;
use crate::sample::{Sample, SampleFigure};
use crate::subject::Who;

/// Writes a second: so many that those who do not read are soon behind by more than they can be sent.
const RATE: u32 = 100;
const STALLED: usize = 100;
const HEALTHY: usize = WATCHERS - STALLED;

/// Events, first to watchers who all read, then with some who do not.
pub struct Stalled {
    fan_out: FanOut,
}

impl Stalled {
    /// For as long as a measurement takes.
    pub fn new(limit: LoadLimit) -> Self {
        Self { fan_out: FanOut::new(RATE, limit) }
    }
}

#[async_trait(?Send)]
impl BenchRow for Stalled {
    fn number(&self) -> u8 {
        10
    }

    fn title(&self) -> String {
        format!("events to {HEALTHY} watchers, {RATE} writes/s, while {STALLED} more do not read")
    }

    fn goals(&self) -> Vec<FigureGoal> {
        vec![
            FigureGoal::number(Who::Sqlite, SampleFigure::More("undelivered"), 0.0),
            FigureGoal::number(Who::Sqlite, SampleFigure::More("closed"), 0.0),
            FigureGoal::number(Who::Sqlite, SampleFigure::More("p99_times_that_without"), 1.05),
        ]
    }

    fn takes(&self, who: Who) -> bool {
        who.is_api()
    }

    fn lanes(&self) -> usize {
        self.fan_out.lanes()
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        self.fan_out.prepare(subject).await
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        subject.server.forget_peak()?;
        let without = self.fan_out.run(subject, Watchers { healthy: HEALTHY, stalled: 0 }).await?;
        let mut with = self.fan_out.run(subject, Watchers { healthy: HEALTHY, stalled: STALLED }).await?;
        with.more.insert("p99_times_that_without", with.p99_us / without.p99_us);
        Ok(with)
    }

    async fn verify(&self, subject: &Subject) -> Result<()> {
        self.fan_out.verify(subject).await
    }
}
