//! Row 8: how long one writer waits while many read everything.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use async_trait::async_trait;
use hdrhistogram::Histogram;
use http_body_util::BodyExt;
use tokio::task::LocalSet;

use super::list::fill;
use super::{BenchRow, FigureGoal, Subject, sample};
use crate::client::SubjectClient;
use crate::load::{ClientLoad, LoadLimit};
use crate::object::{self, LARGE, SMALL};
use crate::sample::{Sample, SampleFigure};
use crate::subject::Who;

const LISTERS: usize = 25;
const PAGERS: usize = 25;
const READERS: usize = LISTERS + PAGERS;
/// Writes of one measurement; each waits for the one before.
const WRITES: u64 = 200;

/// A writer, and readers who never stop.
pub struct WriterAmongReaders {
    objects: u64,
    limit: LoadLimit,
    /// Numbers for the names.
    next: Cell<u64>,
}

impl WriterAmongReaders {
    /// Creates the row with so many objects.
    pub fn new(objects: usize, limit: LoadLimit) -> Self {
        Self { objects: objects as u64, limit, next: Cell::new(objects as u64) }
    }

    async fn write(&self, client: &Arc<dyn SubjectClient>) -> Result<ClientLoad> {
        let (mut latency, began) = (Histogram::new(3)?, Instant::now());
        while latency.len() < WRITES && (began.elapsed() < self.limit.time || latency.is_empty()) {
            let name = object::name(self.next.replace(self.next.get() + 1));
            let object = client.api().object(&name, SMALL)?;
            let sent = Instant::now();
            client.create(READERS, &name, object).await?;
            latency.record(u64::try_from(sent.elapsed().as_nanos())?)?;
        }
        Ok(ClientLoad { latency, elapsed: began.elapsed() })
    }

    async fn run(&self, subject: &Subject) -> Result<Sample> {
        let alone = self.write(&subject.client).await?;
        let (done, before) = (Rc::new(Cell::new(false)), subject.server.used()?);
        let readers: Vec<_> = (0..READERS)
            .map(|reader| tokio::task::spawn_local(read(subject.client.clone(), reader, done.clone())))
            .collect();
        let load = self.write(&subject.client).await?;
        done.set(true);
        let mut lists = 0;
        for reader in readers {
            lists += reader.await??;
        }
        let mut sample = sample(subject, before, &load)?;
        sample.more.insert("lists", lists as f64);
        sample.more.insert("added_p99_us", load.percentile(99.0) - alone.percentile(99.0));
        Ok(sample)
    }
}

/// Reads everything over and over; how often.
async fn read(client: Arc<dyn SubjectClient>, reader: usize, done: Rc<Cell<bool>>) -> Result<usize> {
    let mut times = 0;
    while !done.get() {
        if reader < LISTERS {
            let mut body = client.list(reader).await?;
            while body.frame().await.transpose()?.is_some() {}
        } else {
            let mut page = client.page(reader, None).await?;
            while let Some(token) = page.next.filter(|_| !done.get()) {
                page = client.page(reader, Some(&token)).await?;
            }
        }
        times += 1;
    }
    Ok(times)
}

#[async_trait(?Send)]
impl BenchRow for WriterAmongReaders {
    fn number(&self) -> u8 {
        8
    }

    fn title(&self) -> String {
        format!(
            "create by 1 client while {LISTERS} list and {PAGERS} page through {} objects of 2 KiB",
            self.objects
        )
    }

    fn goals(&self) -> Vec<FigureGoal> {
        vec![FigureGoal::number(Who::Sqlite, SampleFigure::More("added_p99_us"), 500.0)]
    }

    fn takes(&self, who: Who) -> bool {
        who.is_api()
    }

    fn lanes(&self) -> usize {
        READERS + 1
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        fill(&subject.client, self.objects, LARGE).await
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        subject.server.forget_peak()?;
        LocalSet::new().run_until(self.run(subject)).await
    }

    async fn verify(&self, _: &Subject) -> Result<()> {
        Ok(())
    }
}
