//! Row 1: durable creates by one client.

use anyhow::Result;
use async_trait::async_trait;

use super::create_many::CreateMany;
use super::{BenchRow, Bound, FigureGoal, Subject};
use crate::load::LoadLimit;
use crate::sample::{Sample, SampleFigure};
use crate::subject::Who;

/// One client who waits for each answer.
pub struct CreateOne(CreateMany);

impl CreateOne {
    /// Creates the row; `limit` is that of each measurement.
    pub fn new(limit: LoadLimit) -> Self {
        Self(CreateMany::new(1, LoadLimit { operations: limit.operations / 10, ..limit }))
    }
}

#[async_trait(?Send)]
impl BenchRow for CreateOne {
    fn number(&self) -> u8 {
        1
    }

    fn title(&self) -> String {
        "durable create, 1 client".into()
    }

    fn goals(&self) -> Vec<FigureGoal> {
        vec![FigureGoal { who: Who::Sqlite, figure: SampleFigure::P50, bound: Bound::Times(1.0, Who::Raw) }]
    }

    fn lanes(&self) -> usize {
        1
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        self.0.prepare(subject).await
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        self.0.measure(subject).await
    }

    async fn verify(&self, subject: &Subject) -> Result<()> {
        self.0.verify(subject).await
    }
}
