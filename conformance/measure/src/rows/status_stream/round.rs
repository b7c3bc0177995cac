//! One measurement: streams are opened, objects written, and what came to whom is counted.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::{JoinHandle, LocalSet};

use super::objects::StreamObjects;
use super::seen::{Ledger, SubscribersSeen};
use super::subscriber::{StreamSubscriber, request};
use crate::client::{ConnectionWindows, HttpClient};
use crate::load::ClientLoad;
use crate::rows::{Subject, sample};
use crate::sample::Sample;

/// Connections that the subscribers share; one more is for the writes.
pub const CONNECTIONS: usize = 20;
/// Connections that are never read.
const STALLED_CONNECTIONS: usize = 2;
/// How long the last states may take.
const LAST_STATES_LIMIT: Duration = Duration::from_secs(300);

/// What is written, and who subscribes.
pub struct Round {
    /// The objects.
    pub objects: Rc<StreamObjects>,
    /// Writes a second.
    pub rate: u32,
    /// For how long.
    pub time: Duration,
    /// Least time between two updates of an object that subscribers ask for; with none each write is due to
    /// each of them.
    pub interval: Duration,
    /// Subscribers who read.
    pub healthy: usize,
    /// Subscribers who do not read until all has been written.
    pub stalled: usize,
    /// How much the server may send unread to the subscribers who read, and to those beside them who do not.
    pub windows: ConnectionWindows,
}

/// What a round came to.
pub struct RoundOutcome {
    /// The figures.
    pub sample: Sample,
    /// KiB by which the server grew for each subscriber after the first.
    pub memory: f64,
    /// What did not come, or ended.
    pub lost: Option<String>,
}

impl Round {
    /// Runs it.
    pub async fn run(&self, subject: &Subject) -> Result<RoundOutcome> {
        LocalSet::new().run_until(self.write_and_follow(subject)).await
    }

    async fn write_and_follow(&self, subject: &Subject) -> Result<RoundOutcome> {
        let (writes, count) = (self.writes(), self.objects.count());
        let seen = Rc::new(SubscribersSeen::new(self.objects.take_beats(writes), writes, count)?);
        let client = Rc::new(subject.server.http(CONNECTIONS + 1, self.windows).await?);
        let (healthy, memory) = self.open_healthy(subject, &client).await?;
        let stalled = self.open_stalled(subject, &client).await?;
        stalled.iter().for_each(|subscriber| subscriber.ledger.stall());
        let all = healthy.iter().chain(&stalled);
        let ledgers: Vec<Rc<Ledger>> = all.map(|subscriber| subscriber.ledger.clone()).collect();
        ledgers.iter().for_each(|ledger| seen.begin(ledger));
        let follow = |subscriber: StreamSubscriber| tokio::task::spawn_local(subscriber.follow(seen.clone()));
        let (before, began) = (subject.server.used()?, Instant::now());
        let mut readers: Vec<_> = healthy.into_iter().map(follow).collect();
        self.objects.write(&client, CONNECTIONS, self.rate, &seen).await?;
        readers.extend(stalled.into_iter().map(follow));
        ended(readers).await?;
        let load = ClientLoad { latency: seen.latency(), elapsed: began.elapsed() };
        self.judge(sample(subject, before, &load)?, memory, &ledgers)
    }

    fn writes(&self) -> usize {
        (self.time.as_secs_f64() * f64::from(self.rate)) as usize
    }

    /// Subscribes one after another; and KiB by which the server grew for each after the first, for whom it
    /// read the objects.
    async fn open_healthy(
        &self,
        subject: &Subject,
        client: &HttpClient,
    ) -> Result<(Vec<StreamSubscriber>, f64)> {
        let resident = || anyhow::Ok(subject.server.memory()?.resident);
        let mut opened = self.open(client, 0..self.healthy.min(1), CONNECTIONS).await?;
        let before = resident()?;
        opened.extend(self.open(client, 1..self.healthy, CONNECTIONS).await?);
        let grown = resident()?.saturating_sub(before) as f64;
        Ok((opened, grown / self.healthy.saturating_sub(1).max(1) as f64))
    }

    /// Half of them on connections that are never read, and half beside healthy ones.
    async fn open_stalled(&self, subject: &Subject, client: &HttpClient) -> Result<Vec<StreamSubscriber>> {
        let half = self.stalled / 2;
        let unread = subject.server.http(STALLED_CONNECTIONS.min(half), ConnectionWindows::SMALL).await?;
        let mut opened = self.open(&unread, 0..half, STALLED_CONNECTIONS).await?;
        opened.extend(self.open(client, half..self.stalled, CONNECTIONS).await?);
        Ok(opened)
    }

    async fn open(
        &self,
        client: &HttpClient,
        numbers: std::ops::Range<usize>,
        lanes: usize,
    ) -> Result<Vec<StreamSubscriber>> {
        let (request, mut opened) = (request(self.interval)?, Vec::with_capacity(numbers.len()));
        for number in numbers {
            let count = self.objects.count();
            opened.push(StreamSubscriber::open(client, number % lanes, request.clone(), count).await?);
        }
        Ok(opened)
    }

    fn judge(&self, mut sample: Sample, memory: f64, ledgers: &[Rc<Ledger>]) -> Result<RoundOutcome> {
        let delivered = |to: &[Rc<Ledger>]| to.iter().map(|ledger| ledger.delivered.get()).sum::<u64>();
        let (healthy, stalled) = ledgers.split_at(self.healthy);
        let due = (self.healthy * self.writes()) as u64;
        ensure!(delivered(healthy) <= due, "{} states came of {due} writes", delivered(healthy));
        let undelivered = if self.interval.is_zero() { due - delivered(healthy) } else { 0 };
        let behind: usize = ledgers.iter().map(|ledger| ledger.behind()).sum();
        let ended: Vec<String> = ledgers.iter().filter_map(|ledger| ledger.ended.borrow().clone()).collect();
        // The histogram has the writes; CPU is for each state that was delivered.
        let scale = sample.operations as f64 / delivered(ledgers).max(1) as f64;
        sample.operations = delivered(ledgers);
        sample.cpu_us *= scale;
        sample.server_cpu_us *= scale;
        sample.more.insert("undelivered", undelivered as f64);
        sample.more.insert("last_states_missing", behind as f64);
        sample.more.insert("closed", ended.len() as f64);
        if !stalled.is_empty() {
            let each = delivered(stalled) as f64 / stalled.len() as f64;
            sample.more.insert("states_to_a_stalled_one", each);
        }
        // A subscriber that is slow may be told of the newest of several states of an object alone: that each one comes is a
        // goal, as it is one of speed.
        let is_lost = behind > 0 || !ended.is_empty();
        let lost =
            is_lost.then(|| format!("{behind} last states did not come; streams that ended: {ended:?}"));
        Ok(RoundOutcome { sample, memory, lost })
    }
}

/// Waits for the readers, but not forever.
async fn ended(readers: Vec<JoinHandle<Result<()>>>) -> Result<()> {
    let late = tokio::time::Instant::now() + LAST_STATES_LIMIT;
    for mut reader in readers {
        match tokio::time::timeout_at(late, &mut reader).await {
            Ok(ended) => ended??,
            Err(_) => reader.abort(),
        }
    }
    Ok(())
}
