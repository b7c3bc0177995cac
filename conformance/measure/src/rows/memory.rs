//! Row 12: the memory that objects take, and what it takes to have them again after a restart.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Instant;

use anyhow::Result;
use async_trait::async_trait;
use hdrhistogram::Histogram;

use super::list::{fill, listed};
use super::{BenchRow, Bound, FigureGoal, Subject, sample};
use crate::load::ClientLoad;
use crate::object::LARGE;
use crate::sample::{Sample, SampleFigure};
use crate::subject::Who;

/// A server with many objects.
pub struct MemoryRow {
    objects: u64,
    /// MiB that each took before the first list.
    filled: RefCell<HashMap<Who, f64>>,
}

impl MemoryRow {
    /// Creates the row with so many objects.
    pub fn new(objects: usize) -> Self {
        Self { objects: objects as u64, filled: RefCell::default() }
    }

    fn raw_mib(&self) -> f64 {
        (self.objects * LARGE as u64) as f64 / f64::from(1 << 20)
    }
}

#[async_trait(?Send)]
impl BenchRow for MemoryRow {
    fn number(&self) -> u8 {
        12
    }

    fn title(&self) -> String {
        format!("memory with {} objects of 2 KiB ({:.0} MiB); a list of them", self.objects, self.raw_mib())
    }

    fn goals(&self) -> Vec<FigureGoal> {
        let against = |who, times: f64| FigureGoal {
            who: Who::Sqlite,
            figure: SampleFigure::Resident,
            bound: Bound::Times(1.0 / times, who),
        };
        vec![
            FigureGoal::number(Who::Sqlite, SampleFigure::Resident, 1.6 * self.raw_mib()),
            against(Who::Kube, 7.0),
            against(Who::Sample, 4.0),
        ]
    }

    fn takes(&self, who: Who) -> bool {
        who.is_api()
    }

    fn lanes(&self) -> usize {
        16
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        fill(&subject.client, self.objects, LARGE).await
    }

    /// The memory is measured after filling and before the first list, which itself needs memory: it is the same
    /// in all rounds.
    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        let Subject { server, client } = subject;
        let now = server.memory()?.resident as f64 / 1024.0;
        let resident = *self.filled.borrow_mut().entry(server.who).or_insert(now);
        let before = server.used()?;
        let (mut latency, began) = (Histogram::new(3)?, Instant::now());
        listed(client, 0).await?;
        latency.record(u64::try_from(began.elapsed().as_nanos())?)?;
        let mut sample = sample(subject, before, &ClientLoad { latency, elapsed: began.elapsed() })?;
        sample.resident_mib = resident;
        if server.who.is_drydock() {
            let ready = server.restart(&[]).await?;
            sample.more.insert("ready_again_ms", ready.as_secs_f64() * 1e3);
            sample.more.insert("then_resident_mib", server.memory()?.resident as f64 / 1024.0);
        }
        Ok(sample)
    }

    async fn verify(&self, _: &Subject) -> Result<()> {
        Ok(())
    }
}
