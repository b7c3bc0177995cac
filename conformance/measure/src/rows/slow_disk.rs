//! Row 3: row 2 on a disk whose fsync takes a millisecond more. What group commit is for.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use async_trait::async_trait;

use super::create_many::CreateMany;
use super::{BenchRow, Bound, FigureGoal, Subject};
use crate::load::LoadLimit;
use crate::object::{self, SMALL};
use crate::sample::{Sample, SampleFigure};
use crate::subject::Who;

/// Three fsyncs, in microseconds, each with the time that it takes by itself.
const THREE_FSYNCS: f64 = 3.0 * 1_100.0;

/// Creates, on both disks.
pub struct SlowDisk {
    creates: CreateMany,
}

impl SlowDisk {
    /// Creates the row with so many clients; `limit` is that of each measurement.
    pub fn new(clients: usize, limit: LoadLimit) -> Self {
        Self { creates: CreateMany::new(clients, limit) }
    }
}

#[async_trait(?Send)]
impl BenchRow for SlowDisk {
    fn number(&self) -> u8 {
        3
    }

    fn title(&self) -> String {
        format!("{}, each fsync 1 ms slower", self.creates.title())
    }

    fn goals(&self) -> Vec<FigureGoal> {
        vec![
            FigureGoal {
                who: Who::SlowDisk,
                figure: SampleFigure::Rate,
                bound: Bound::AtLeast(0.9, Who::Sqlite),
            },
            FigureGoal::number(Who::SlowDisk, SampleFigure::P99, THREE_FSYNCS),
        ]
    }

    fn takes(&self, who: Who) -> bool {
        matches!(who, Who::Sqlite | Who::SlowDisk)
    }

    fn lanes(&self) -> usize {
        self.creates.lanes()
    }

    /// One write alone tells whether the disk is what it should be.
    async fn prepare(&self, subject: &Subject) -> Result<()> {
        self.creates.prepare(subject).await?;
        let (name, client) = (object::name(u64::from(u32::MAX)), &subject.client);
        let (object, began) = (client.api().object(&name, SMALL)?, Instant::now());
        client.create(0, &name, object).await?;
        let slow = subject.server.who == Who::SlowDisk;
        ensure!(!slow || began.elapsed() >= Duration::from_millis(1), "its fsync is no slower");
        self.creates.acknowledge(subject.server.who, 1);
        Ok(())
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        self.creates.measure(subject).await
    }

    async fn verify(&self, subject: &Subject) -> Result<()> {
        self.creates.verify(subject).await
    }
}
