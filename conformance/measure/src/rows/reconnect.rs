//! Row 11: many informers come back at once, as after a restart of the server or of the network.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use hdrhistogram::Histogram;
use http_body_util::BodyExt;
use tokio::task::LocalSet;

use super::list::fill;
use super::{BenchRow, FigureGoal, Subject, sample};
use crate::client::{SubjectClient, WatchBeginning};
use crate::load::{ClientLoad, LoadLimit, drive};
use crate::object::{self, SMALL};
use crate::sample::{Sample, SampleFigure};
use crate::subject::Who;

const INFORMERS: usize = 500;
/// Processes, with a connection each.
const CONNECTIONS: usize = 50;
/// Objects that there are at first, and events that an informer has missed.
const OBJECTS: u64 = 200;

/// Informers who reconnect.
pub struct Reconnect {
    resumes: bool,
    /// Numbers for the names.
    next: Cell<u64>,
}

impl Reconnect {
    /// They go on behind the revision that they saw last.
    pub fn resuming() -> Self {
        Self { resumes: true, next: Cell::new(OBJECTS) }
    }

    /// They have everything sent once more (WatchList).
    pub fn from_the_start() -> Self {
        Self { resumes: false, ..Self::resuming() }
    }

    /// Writes what they miss.
    async fn write(&self, client: &Arc<dyn SubjectClient>) -> Result<()> {
        let first = self.next.replace(self.next.get() + OBJECTS);
        let client = Rc::new(client.clone());
        let limit = LoadLimit { operations: OBJECTS, time: std::time::Duration::MAX };
        drive(8, limit, move |lane, number| {
            let client = client.clone();
            async move {
                let name = object::name(first + number);
                client.create(lane, &name, client.api().object(&name, SMALL)?).await
            }
        })
        .await
        .map(drop)
    }

    async fn run(&self, subject: &Subject) -> Result<Sample> {
        let revision = subject.client.revision().await?;
        let events = if self.resumes {
            self.write(&subject.client).await?;
            OBJECTS
        } else {
            // And the bookmark behind them.
            OBJECTS + 1
        };
        let (before, began) = (subject.server.used()?, Instant::now());
        let latency = Rc::new(RefCell::new(Histogram::<u64>::new(3)?));
        let mut informers = Vec::with_capacity(INFORMERS);
        let client = subject.server.connect(CONNECTIONS).await?;
        for informer in 0..INFORMERS {
            let (client, revision, latency) = (client.clone(), revision.clone(), latency.clone());
            let from = self.resumes.then_some(revision);
            informers.push(tokio::task::spawn_local(async move {
                let sent = Instant::now();
                let whole = follow(&client, informer % CONNECTIONS, from.as_deref(), events).await?;
                latency.borrow_mut().record(u64::try_from(sent.elapsed().as_nanos())?)?;
                anyhow::Ok(whole)
            }));
        }
        let mut refused = 0;
        for informer in informers {
            refused += u32::from(!informer.await??);
        }
        let load = ClientLoad { latency: latency.borrow().clone(), elapsed: began.elapsed() };
        let mut sample = sample(subject, before, &load)?;
        sample.more.insert("refused", f64::from(refused));
        Ok(sample)
    }
}

/// Follows a watch until it has brought so many events; whether it did.
async fn follow(
    client: &Arc<dyn SubjectClient>,
    lane: usize,
    revision: Option<&str>,
    events: u64,
) -> Result<bool> {
    let from = revision.map_or(WatchBeginning::InitialEvents, WatchBeginning::Revision);
    let (mut body, mut came) = (client.watch(lane, from).await?, 0);
    while came < events {
        let Some(Ok(frame)) = body.frame().await else { return Ok(false) };
        let data = frame.data_ref().map(|data| data.as_ref()).unwrap_or_default();
        if data.windows(7).any(|at| at == b"\"ERROR\"") {
            return Ok(false);
        }
        came += data.iter().filter(|byte| **byte == b'\n').count() as u64;
    }
    ensure!(came == events, "{came} events instead of {events}");
    Ok(true)
}

#[async_trait(?Send)]
impl BenchRow for Reconnect {
    fn number(&self) -> u8 {
        11
    }

    fn title(&self) -> String {
        let how = if self.resumes { "resume behind" } else { "have sent anew" };
        let what = if self.resumes { "events" } else { "objects" };
        format!("{INFORMERS} informers on {CONNECTIONS} connections {how} {OBJECTS} {what}")
    }

    fn goals(&self) -> Vec<FigureGoal> {
        vec![
            FigureGoal::cpu(Who::Sqlite, Who::Kube, 1.0 / 10.0),
            FigureGoal::number(Who::Sqlite, SampleFigure::More("refused"), 0.0),
        ]
    }

    /// sample-apiserver has no flags for requests in flight and refuses some of so many.
    fn takes(&self, who: Who) -> bool {
        who.is_api() && who != Who::Sample
    }

    fn lanes(&self) -> usize {
        8
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        fill(&subject.client, OBJECTS, SMALL).await
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        subject.server.forget_peak()?;
        LocalSet::new().run_until(self.run(subject)).await
    }

    async fn verify(&self, _: &Subject) -> Result<()> {
        Ok(())
    }
}
