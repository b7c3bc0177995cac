//! Row 5: consistent reads of single objects.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;

use super::list::fill;
use super::{BenchRow, FigureGoal, Subject, sample};
use crate::client::SubjectClient;
use crate::load::{ClientLoad, LoadLimit, drive};
use crate::object::{self, LARGE};
use crate::sample::Sample;
use crate::subject::Who;

const CLIENTS: usize = 64;
/// Objects that are read, in turn.
const OBJECTS: u64 = 256;
const WARM_UP: u64 = 2000;

/// Clients who read.
pub struct Get {
    limit: LoadLimit,
}

impl Get {
    /// Creates the row; `limit` is that of each measurement.
    pub fn new(limit: LoadLimit) -> Self {
        Self { limit }
    }

    async fn read(&self, client: &Arc<dyn SubjectClient>, limit: LoadLimit) -> Result<ClientLoad> {
        let client = client.clone();
        drive(CLIENTS, limit, move |lane, number| {
            let client = client.clone();
            async move { client.get(lane, &object::name(number % OBJECTS)).await.map(drop) }
        })
        .await
    }
}

#[async_trait(?Send)]
impl BenchRow for Get {
    fn number(&self) -> u8 {
        5
    }

    fn title(&self) -> String {
        format!("consistent GET of 2 KiB, {CLIENTS} clients")
    }

    fn goals(&self) -> Vec<FigureGoal> {
        vec![
            FigureGoal::cpu(Who::Sqlite, Who::Raw, 0.5),
            FigureGoal::cpu(Who::Sqlite, Who::Kube, 1.0 / 38.0),
            FigureGoal::cpu(Who::Sqlite, Who::Sample, 1.0 / 24.0),
            FigureGoal::above_lower_bound(),
        ]
    }

    fn lanes(&self) -> usize {
        16
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        fill(&subject.client, OBJECTS, LARGE).await?;
        self.read(&subject.client, LoadLimit { operations: WARM_UP, ..self.limit }).await.map(drop)
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        subject.server.forget_peak()?;
        let before = subject.server.used()?;
        let load = self.read(&subject.client, self.limit).await?;
        sample(subject, before, &load)
    }

    async fn verify(&self, subject: &Subject) -> Result<()> {
        let client = &subject.client;
        for number in 0..OBJECTS {
            let name = object::name(number);
            let found = serde_json::from_slice(&client.get(0, &name).await?)?;
            object::check(&found, &client.api().object(&name, LARGE)?)?;
        }
        Ok(())
    }
}
