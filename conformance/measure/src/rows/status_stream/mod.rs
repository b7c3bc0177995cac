//! Row 15: the gRPC status stream, and how it compares with row 9: as many watchers of the same server.
//!
//! The objects are the EvictionRequests of row 9. A write is a status update, as an interceptor's report in a
//! drain is: a message of an object is what is current, and only a write that comes after another one of the
//! object shows whether the last one arrives.

mod frames;
mod objects;
mod round;
mod seen;
mod subscriber;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;

use super::fan_out::{FanOut, Watchers};
use super::{BenchRow, FigureGoal, Subject};
use crate::Arguments;
use crate::client::ConnectionWindows;
use crate::load::LoadLimit;
use crate::sample::{Sample, SampleFigure};
use crate::subject::Who;
use objects::StreamObjects;
use round::{Round, RoundOutcome};

/// Writes a second of many objects.
const RATE: u32 = 100;
/// Writes a second of few objects, the least interval between two updates of each, and how many there are.
const FAST: (u32, Duration, usize) = (200, Duration::from_millis(100), 10);

/// What is measured of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Many objects: each write is delivered.
    Each,
    /// Few objects, written more often than the subscribers ask for updates.
    Coalesced,
    /// Many objects, while some subscribers do not read.
    Stalled,
}

/// Subscribers of one filter.
pub struct StatusStreamRow {
    case: Case,
    subscribers: usize,
    time: Duration,
    stalled_for: Duration,
    watchers: FanOut,
    objects: RefCell<Option<Rc<StreamObjects>>>,
    /// KiB that a subscriber took in the first round: what the server has freed since is not given back at once.
    memory: Cell<Option<f64>>,
    /// What was lost in any round.
    lost: RefCell<Vec<String>>,
}

impl StatusStreamRow {
    /// One case.
    pub fn new(case: Case, arguments: &Arguments, limit: LoadLimit) -> Self {
        Self {
            case,
            subscribers: arguments.subscribers.max(1),
            time: limit.time,
            stalled_for: Duration::from_secs(arguments.stalled_seconds.max(1)),
            watchers: FanOut::new(RATE, limit),
            objects: RefCell::default(),
            memory: Cell::default(),
            lost: RefCell::default(),
        }
    }

    fn stalled(&self) -> usize {
        self.subscribers.div_ceil(10)
    }

    fn rate_and_interval(&self) -> (u32, Duration) {
        match self.case {
            Case::Each | Case::Stalled => (RATE, Duration::ZERO),
            Case::Coalesced => (FAST.0, FAST.1),
        }
    }

    async fn run(&self, subject: &Subject, healthy: usize, stalled: usize) -> Result<Sample> {
        let objects = self.objects.borrow().clone().context("the objects were not made")?;
        let (rate, interval) = self.rate_and_interval();
        // A stream that is not read is felt soon, and its connection is not. The round without such streams has the same
        // windows and time, so that the two differ in nothing else.
        let (time, windows) = match self.case {
            Case::Stalled => (self.stalled_for, ConnectionWindows::NARROW),
            Case::Each | Case::Coalesced => (self.time, ConnectionWindows::USUAL),
        };
        let round = Round { objects, rate, time, interval, healthy, stalled, windows };
        let RoundOutcome { mut sample, memory, lost } = round.run(subject).await?;
        self.lost.borrow_mut().extend(lost);
        if self.memory.get().is_none() {
            self.memory.set(Some(memory));
        }
        sample.more.insert("KiB_a_subscriber", self.memory.get().unwrap_or_default());
        Ok(sample)
    }

    /// Subscribers, then as many watchers of the server.
    async fn beside_watchers(&self, subject: &Subject) -> Result<Sample> {
        let healthy = self.subscribers;
        let mut sample = self.run(subject, healthy, 0).await?;
        let watched = self.watchers.run(subject, Watchers { healthy, stalled: 0 }).await?;
        sample.more.insert("CPU_us_of_row_9", watched.cpu_us);
        sample.more.insert("CPU_times_that_of_row_9", sample.cpu_us / watched.cpu_us);
        Ok(sample)
    }

    /// A round with stalled subscribers between two without: a machine that slows down or speeds up shifts both
    /// alike, and the two without say how far the same work differs from itself.
    async fn beside_stalled(&self, subject: &Subject) -> Result<Sample> {
        let (stalled, healthy) = (self.stalled(), self.subscribers - self.stalled());
        let before = self.run(subject, healthy, 0).await?;
        let mut with = self.run(subject, healthy, stalled).await?;
        let after = self.run(subject, healthy, 0).await?;
        let times = |figure: fn(&Sample) -> f64| {
            let (before, after) = (figure(&before), figure(&after));
            (figure(&with) / ((before + after) / 2.0), after / before)
        };
        let (p50, p99, cpu) = (times(|s| s.p50_us), times(|s| s.p99_us), times(|s| s.cpu_us));
        with.more.extend([
            ("p50_times_that_without", p50.0),
            ("p99_times_that_without", p99.0),
            ("CPU_times_that_without", cpu.0),
            ("p50_without_after_to_before", p50.1),
            ("p99_without_after_to_before", p99.1),
            ("CPU_without_after_to_before", cpu.1),
        ]);
        Ok(with)
    }
}

#[async_trait(?Send)]
impl BenchRow for StatusStreamRow {
    fn number(&self) -> u8 {
        15
    }

    fn title(&self) -> String {
        let (subscribers, (rate, interval)) = (self.subscribers, self.rate_and_interval());
        let stream = format!("status stream to {subscribers} subscribers, {rate} writes/s");
        match self.case {
            Case::Each => stream,
            Case::Coalesced => format!("{stream} of {} objects, told every {interval:?}", FAST.2),
            Case::Stalled => {
                format!("{stream}, while {} of them do not read for {:?}", self.stalled(), self.stalled_for)
            }
        }
    }

    fn goals(&self) -> Vec<FigureGoal> {
        let goal = |figure, at_most| FigureGoal::number(Who::Sqlite, figure, at_most);
        let more = |name, at_most| goal(SampleFigure::More(name), at_most);
        let mut goals = vec![more("undelivered", 0.0), more("last_states_missing", 0.0), more("closed", 0.0)];
        match self.case {
            Case::Each => {
                goals.extend([goal(SampleFigure::P99, 50_000.0), more("CPU_times_that_of_row_9", 1.3)])
            }
            Case::Coalesced => goals.push(goal(SampleFigure::P99, 150_000.0)),
            Case::Stalled => goals.push(more("p99_times_that_without", 1.05)),
        }
        goals
    }

    fn takes(&self, who: Who) -> bool {
        who == Who::Sqlite
    }

    fn lanes(&self) -> usize {
        self.watchers.lanes()
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        self.watchers.prepare(subject).await?;
        let count = if self.case == Case::Coalesced { FAST.2 } else { self.subscribers };
        let client = subject.server.http(1, ConnectionWindows::USUAL).await?;
        let objects = StreamObjects::create(&client, count).await?;
        self.objects.replace(Some(Rc::new(objects)));
        Ok(())
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        subject.server.forget_peak()?;
        match self.case {
            Case::Each => self.beside_watchers(subject).await,
            Case::Coalesced => self.run(subject, self.subscribers, 0).await,
            Case::Stalled => self.beside_stalled(subject).await,
        }
    }

    /// Nothing was lost, and no stream was ended.
    async fn verify(&self, _: &Subject) -> Result<()> {
        let lost = self.lost.borrow();
        ensure!(lost.is_empty(), "{}", lost.join("\n"));
        Ok(())
    }
}
