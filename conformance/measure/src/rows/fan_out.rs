//! Row 9: one writer, a thousand watchers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use hdrhistogram::Histogram;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::task::LocalSet;

use super::{BenchRow, FigureGoal, Subject, sample};
use crate::client::WatchBeginning;
use crate::load::{ClientLoad, LoadLimit};
use crate::object::{self, SMALL};
use crate::sample::{Sample, SampleFigure};
use crate::subject::Who;

/// All of them together.
pub const WATCHERS: usize = 1000;
/// Connections that they share.
const CONNECTIONS: usize = 20;
/// Of one watcher in so many the latency of each event is recorded; the others count events.
const SAMPLED: usize = 16;
/// How long the last event may take.
const LAST_EVENT_LIMIT: Duration = Duration::from_secs(10);

/// How many watch.
#[derive(Clone, Copy, Debug)]
pub struct Watchers {
    /// Who read what they are sent.
    pub healthy: usize,
    /// Who never do.
    pub stalled: usize,
}

/// Events at a fixed rate.
pub struct FanOut {
    rate: u32,
    time: Duration,
    /// Numbers for the names.
    next: Cell<u64>,
}

impl FanOut {
    /// So many events a second, for as long as a measurement takes.
    pub fn new(rate: u32, limit: LoadLimit) -> Self {
        Self { rate, time: limit.time, next: Cell::new(0) }
    }

    fn events(&self) -> usize {
        (self.time.as_secs_f64() * f64::from(self.rate)) as usize
    }

    /// Opens the watches; then `events` creates, each at its time.
    pub async fn run(&self, subject: &Subject, watchers: Watchers) -> Result<Sample> {
        LocalSet::new().run_until(self.write_and_follow(subject, watchers)).await
    }

    async fn write_and_follow(&self, subject: &Subject, watchers: Watchers) -> Result<Sample> {
        let Watchers { healthy, stalled } = watchers;
        let client = subject.client.clone();
        let first = self.next.replace(self.next.get() + self.events() as u64);
        let revision = client.revision().await?;
        let seen = Rc::new(WatchersSeen::new(first, self.events())?);
        let _unread = stall(subject, stalled, &revision).await?;
        let mut watchers = Vec::with_capacity(healthy);
        for watcher in 0..healthy {
            let body = client.watch(watcher % CONNECTIONS, WatchBeginning::Revision(&revision)).await?;
            let seen = seen.clone();
            watchers.push(tokio::task::spawn_local(async move { seen.follow(body, watcher).await }));
        }
        let (before, began) = (subject.server.used()?, Instant::now());
        self.write(subject, &seen).await?;
        let mut closed = 0;
        let late = tokio::time::Instant::now() + LAST_EVENT_LIMIT;
        for mut watcher in watchers {
            match tokio::time::timeout_at(late, &mut watcher).await {
                Ok(ended) => closed += u32::from(!ended??),
                Err(_) => watcher.abort(),
            }
        }
        let load = ClientLoad { latency: seen.latency.borrow().clone(), elapsed: began.elapsed() };
        let mut sample = sample(subject, before, &load)?;
        let (delivered, due) = (seen.delivered.get(), (healthy * self.events()) as u64);
        ensure!(delivered <= due, "{delivered} events of {due}: some came twice");
        // The histogram has the recorded ones; CPU is for each that was delivered.
        let scale = load.latency.len() as f64 / delivered.max(1) as f64;
        sample.operations = delivered;
        sample.cpu_us *= scale;
        sample.server_cpu_us *= scale;
        sample.more.insert("undelivered", (due - delivered) as f64);
        sample.more.insert("closed", f64::from(closed));
        Ok(sample)
    }

    /// The writes, each at its time, whether or not the ones before it have been answered.
    async fn write(&self, subject: &Subject, seen: &WatchersSeen) -> Result<()> {
        let mut tick = tokio::time::interval(Duration::from_secs(1) / self.rate);
        let mut writes = Vec::with_capacity(seen.events);
        for number in seen.first..seen.first + seen.events as u64 {
            tick.tick().await;
            let (client, name) = (subject.client.clone(), object::name(number));
            let object = client.api().object(&name, SMALL)?;
            seen.sent.borrow_mut().push(Instant::now());
            let write = async move { client.create(CONNECTIONS, &name, object).await };
            writes.push(tokio::task::spawn_local(write));
        }
        for write in writes {
            write.await??;
        }
        Ok(())
    }
}

/// Watches that are never read, on connections of their own.
async fn stall(subject: &Subject, count: usize, revision: &str) -> Result<Vec<Incoming>> {
    let mut unread = Vec::with_capacity(count);
    let lanes = count.min(2);
    let client = subject.server.connect_sluggish(lanes).await?;
    for watcher in 0..count {
        unread.push(client.watch(watcher % lanes, WatchBeginning::Revision(revision)).await?);
    }
    Ok(unread)
}

/// What the watchers got.
struct WatchersSeen {
    first: u64,
    events: usize,
    sent: RefCell<Vec<Instant>>,
    latency: RefCell<Histogram<u64>>,
    delivered: Cell<u64>,
}

impl WatchersSeen {
    fn new(first: u64, events: usize) -> Result<Self> {
        let latency = RefCell::new(Histogram::new(3)?);
        Ok(Self { first, events, sent: RefCell::default(), latency, delivered: Cell::new(0) })
    }

    /// Follows one watch until all events have come; whether they did before it was closed.
    async fn follow(&self, mut body: Incoming, watcher: usize) -> Result<bool> {
        let (mut missing, mut lines, mut known) = (self.events, Vec::new(), vec![false; self.events]);
        while missing > 0 {
            let Some(Ok(frame)) = body.frame().await else { return Ok(false) };
            let Ok(data) = frame.into_data() else { continue };
            let ends = data.iter().filter(|byte| **byte == b'\n').count();
            missing = missing.checked_sub(ends).context("more events than writes")?;
            self.delivered.set(self.delivered.get() + ends as u64);
            if watcher.is_multiple_of(SAMPLED) {
                lines.extend_from_slice(&data);
                self.record_latencies(&mut lines, &mut known)?;
            }
        }
        Ok(true)
    }

    /// Takes whole lines off: each is the event of a write that was not known yet.
    fn record_latencies(&self, lines: &mut Vec<u8>, known: &mut [bool]) -> Result<()> {
        while let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
            let number = object::number(&lines[..end]).context("an event without a name")?;
            let index = number.checked_sub(self.first).context("an event of an earlier measurement")?;
            let index = usize::try_from(index)?;
            let sent = *self.sent.borrow().get(index).context("an event before its write")?;
            self.latency.borrow_mut().record(u64::try_from(sent.elapsed().as_nanos())?)?;
            ensure!(!std::mem::replace(&mut known[index], true), "an event came twice");
            lines.drain(..=end);
        }
        Ok(())
    }
}

#[async_trait(?Send)]
impl BenchRow for FanOut {
    fn number(&self) -> u8 {
        9
    }

    fn title(&self) -> String {
        format!("events to {WATCHERS} watchers, {} writes/s", self.rate)
    }

    fn goals(&self) -> Vec<FigureGoal> {
        let mut goals = vec![
            FigureGoal::number(Who::Sqlite, SampleFigure::More("undelivered"), 0.0),
            FigureGoal::number(Who::Sqlite, SampleFigure::More("closed"), 0.0),
            FigureGoal::number(Who::Sqlite, SampleFigure::P99, 30_000.0),
            FigureGoal::above_lower_bound(),
        ];
        // What the others spend on an event grows with those who are closed: 5 us of their 35 and 20.
        match self.rate {
            20 => {
                goals.extend([Who::Kube, Who::Sample].map(|who| FigureGoal::cpu(Who::Sqlite, who, 1.0 / 7.0)))
            }
            50 => {
                goals.extend([Who::Kube, Who::Sample].map(|who| FigureGoal::cpu(Who::Sqlite, who, 1.0 / 4.0)))
            }
            _ => {}
        }
        goals
    }

    fn takes(&self, who: Who) -> bool {
        who.is_api() || who == Who::LowerBound
    }

    fn lanes(&self) -> usize {
        CONNECTIONS + 1
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        let name = object::name(u64::from(u32::MAX));
        subject.client.create(0, &name, subject.client.api().object(&name, SMALL)?).await
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        subject.server.forget_peak()?;
        self.run(subject, Watchers { healthy: WATCHERS, stalled: 0 }).await
    }

    /// Each event was recorded when it came.
    async fn verify(&self, _: &Subject) -> Result<()> {
        Ok(())
    }
}
