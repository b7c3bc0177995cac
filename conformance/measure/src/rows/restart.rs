//! Row 13: from kill -9 to ready.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use async_trait::async_trait;
use hdrhistogram::Histogram;

use super::list::fill;
use super::{BenchRow, FigureGoal, Subject, sample};
use crate::load::ClientLoad;
use crate::object::LARGE;
use crate::sample::{Sample, SampleFigure};
use crate::subject::{Used, Who};

/// A server that is killed with much in store.
pub struct Restart {
    mib: usize,
}

impl Restart {
    /// Creates the row with so many MiB of objects.
    pub fn new(mib: usize) -> Self {
        Self { mib }
    }

    fn objects(&self) -> u64 {
        ((self.mib << 20) / LARGE) as u64
    }
}

#[async_trait(?Send)]
impl BenchRow for Restart {
    fn number(&self) -> u8 {
        13
    }

    fn title(&self) -> String {
        format!("from kill -9 to ready with {} MiB stored", self.mib)
    }

    fn goals(&self) -> Vec<FigureGoal> {
        vec![FigureGoal::number(Who::Sqlite, SampleFigure::More("ready_again_ms"), 2_000.0)]
    }

    fn takes(&self, who: Who) -> bool {
        matches!(who, Who::Sqlite | Who::Etcd)
    }

    fn lanes(&self) -> usize {
        16
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        fill(&subject.client, self.objects(), LARGE).await
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        let began = Instant::now();
        // The server's process will be a new one: all its time counts.
        let before = Used { server: Duration::ZERO, ..subject.server.used()? };
        let ready = subject.server.restart(&[]).await?;
        let mut latency = Histogram::new(3)?;
        latency.record(u64::try_from(ready.as_nanos())?)?;
        let mut sample = sample(subject, before, &ClientLoad { latency, elapsed: began.elapsed() })?;
        sample.more.insert("ready_again_ms", ready.as_secs_f64() * 1e3);
        Ok(sample)
    }

    /// Checks that no object is lost.
    async fn verify(&self, subject: &Subject) -> Result<()> {
        let (mut count, mut token) = (0, None);
        loop {
            let page = subject.client.page(0, token.as_deref()).await?;
            count += page.body.windows(8).filter(|at| at == b"\"target\"").count() as u64;
            match page.next {
                Some(next) => token = Some(next),
                None => break,
            }
        }
        ensure!(count == self.objects(), "{count} of {} objects are left", self.objects());
        Ok(())
    }
}
