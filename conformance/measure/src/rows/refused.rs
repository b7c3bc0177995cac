//! Row 18: what it costs to refuse a request that finds no seat and no place in its queue.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use http::StatusCode;

use super::list::fill;
use super::{BenchRow, FigureGoal, Subject, sample};
use crate::client::HttpClient;
use crate::load::{ClientLoad, LoadLimit, drive};
use crate::object::{self, LARGE};
use crate::sample::{Sample, SampleFigure};
use crate::subject::Who;

/// Clients while all requests are served.
const SERVED: usize = 64;
/// Clients of a user who has one seat and a queue of 50: most of what they ask is refused.
const REFUSED: usize = 512;
/// Objects that are read, in turn.
const OBJECTS: u64 = 256;
/// One seat for all requests that only read, and one for those that write: the least that is a limit.
const ONE_SEAT: [&str; 2] = ["--max-requests-inflight=1", "--max-mutating-requests-inflight=1"];
const LANES: usize = 16;

/// Reads that are served, and reads of which most are refused.
pub struct RefusedRow {
    limit: LoadLimit,
}

/// Reads, and how many of them were refused.
struct Reads {
    load: ClientLoad,
    refused: u64,
}

impl RefusedRow {
    /// Each of two phases takes at most half of the limit's time.
    pub fn new(limit: LoadLimit) -> Self {
        Self { limit: LoadLimit { time: limit.time / 2, operations: 100 * limit.operations } }
    }

    async fn read(&self, user: &Arc<HttpClient>, clients: usize) -> Result<Reads> {
        let (user, refused) = (user.clone(), Rc::new(Cell::new(0)));
        let counted = refused.clone();
        let load = drive(clients, self.limit, move |lane, number| {
            let (user, refused) = (user.clone(), counted.clone());
            async move {
                match user.try_get(lane, &object::name(number % OBJECTS)).await? {
                    StatusCode::OK => {}
                    StatusCode::TOO_MANY_REQUESTS => refused.set(refused.get() + 1),
                    other => anyhow::bail!("a GET was answered {other}"),
                }
                Ok(())
            }
        })
        .await?;
        Ok(Reads { load, refused: refused.get() })
    }
}

#[async_trait(?Send)]
impl BenchRow for RefusedRow {
    fn number(&self) -> u8 {
        18
    }

    fn title(&self) -> String {
        format!("GETs of {REFUSED} clients of one user with one seat, nearly all answered 429")
    }

    fn goals(&self) -> Vec<FigureGoal> {
        vec![FigureGoal::number(Who::Sqlite, SampleFigure::More("times_a_served_get"), 1.0)]
    }

    fn takes(&self, who: Who) -> bool {
        who == Who::Sqlite
    }

    fn lanes(&self) -> usize {
        LANES
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        fill(&subject.client, OBJECTS, LARGE).await
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        let server = &subject.server;
        server.restart(&[]).await?;
        let user = Arc::new(server.connect_as("reader", LANES).await?);
        self.read(&user, SERVED).await?;
        let before = server.used()?;
        let served = sample(subject, before, &self.read(&user, SERVED).await?.load)?;
        server.restart(&ONE_SEAT).await?;
        let user = Arc::new(server.connect_as("reader", LANES).await?);
        let (before, began) = (server.used()?, Instant::now());
        let Reads { load, refused } = self.read(&user, REFUSED).await?;
        ensure!(refused > 0, "nothing was refused within {:?}", began.elapsed());
        let mut sample = sample(subject, before, &load)?;
        sample.more.insert("served_get_us", served.cpu_us);
        sample.more.insert("times_a_served_get", sample.cpu_us / served.cpu_us);
        sample.more.insert("refused_percent", 100.0 * refused as f64 / load.latency.len().max(1) as f64);
        Ok(sample)
    }

    async fn verify(&self, _: &Subject) -> Result<()> {
        Ok(())
    }
}
