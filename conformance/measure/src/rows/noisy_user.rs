//! Row 17: what one user who asks for ten times its share costs the others.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use async_trait::async_trait;
use hdrhistogram::Histogram;
use http::StatusCode;
use tokio::task::{JoinHandle, LocalSet};

use super::{BenchRow, FigureGoal, Subject, sample};
use crate::client::HttpClient;
use crate::load::{ClientLoad, LoadLimit};
use crate::object::{self, SMALL};
use crate::sample::{Sample, SampleFigure};
use crate::subject::Who;

/// Users besides the noisy one.
const OTHERS: usize = 4;
/// Requests on their way of a user who takes exactly its share: ordinary users have 45% of 600 seats together.
const SHARE: usize = 270 / (OTHERS + 1);
/// How many times its share the noisy user asks for.
const TIMES: usize = 10;
/// Connections of each user.
const LANES: usize = 8;

/// Users who create objects without storing them, whose number is bounded, each with as many requests on
/// their way as its share; one of them then with more.
pub struct NoisyUser {
    limit: LoadLimit,
    users: RefCell<HashMap<Who, Vec<Arc<HttpClient>>>>,
    /// Numbers for the names.
    next: Rc<Cell<u64>>,
}

/// What the clients of a phase saw.
struct NoisyPhase {
    others: ClientLoad,
    /// The noisy user's requests that were served, and those that were refused.
    served: u64,
    refused: u64,
}

impl NoisyUser {
    /// Each of two phases takes at most half of the limit's time.
    pub fn new(limit: LoadLimit) -> Self {
        let limit = LoadLimit { time: limit.time / 2, ..limit };
        Self { limit, users: RefCell::default(), next: Rc::default() }
    }

    fn users(&self, who: Who) -> Vec<Arc<HttpClient>> {
        self.users.borrow().get(&who).cloned().unwrap_or_default()
    }

    /// The noisy user has `noise` requests on their way, and each other one its share.
    async fn phase(&self, subject: &Subject, noise: usize) -> Result<NoisyPhase> {
        let users = self.users(subject.server.who);
        let began = Instant::now();
        let spawn = |user: &Arc<HttpClient>, lane, retries| {
            let client = Creator { user: user.clone(), lane, next: self.next.clone(), retries };
            tokio::task::spawn_local(client.create_until(began + self.limit.time))
        };
        let mut others: Vec<JoinHandle<Result<Created>>> = Vec::new();
        for user in users.iter().take(OTHERS) {
            others.extend((0..SHARE).map(|lane| spawn(user, lane, true)));
        }
        let noisy: Vec<_> = users
            .last()
            .map_or_else(Vec::new, |user| (0..noise).map(|lane| spawn(user, lane, false)).collect());
        let mut latency = Histogram::new(3)?;
        for other in others {
            latency.add(other.await??.latency)?;
        }
        let mut phase =
            NoisyPhase { others: ClientLoad { latency, elapsed: began.elapsed() }, served: 0, refused: 0 };
        for one in noisy {
            let Created { latency, refused } = one.await??;
            phase.served += latency.len();
            phase.refused += refused;
        }
        Ok(phase)
    }

    async fn run(&self, subject: &Subject) -> Result<Sample> {
        let at_share = self.phase(subject, SHARE).await?;
        let before = subject.server.used()?;
        let beyond = self.phase(subject, TIMES * SHARE).await?;
        let mut sample = sample(subject, before, &beyond.others)?;
        let p99 = |phase: &NoisyPhase| phase.others.percentile(99.0);
        sample.more.insert("p99_at_share_us", p99(&at_share));
        sample.more.insert("p99_times_that_at_share", p99(&beyond) / p99(&at_share));
        sample.more.insert("noisy_served", beyond.served as f64);
        sample.more.insert("noisy_refused", beyond.refused as f64);
        Ok(sample)
    }
}

/// One client in a closed loop.
struct Creator {
    user: Arc<HttpClient>,
    lane: usize,
    next: Rc<Cell<u64>>,
    /// Whether a refused create is tried again and counts as one with all its tries.
    retries: bool,
}

/// What a client saw: the latencies of the creates that succeeded, in nanoseconds, and how often it was refused.
struct Created {
    latency: Histogram<u64>,
    refused: u64,
}

impl Creator {
    async fn create_until(self, end: Instant) -> Result<Created> {
        let mut created = Created { latency: Histogram::new(3)?, refused: 0 };
        let mut sent = None;
        while Instant::now() < end {
            let name = object::name(self.next.replace(self.next.get() + 1));
            let began = *sent.get_or_insert_with(Instant::now);
            match self.user.try_create(self.lane, self.user.object(&name, SMALL)?).await? {
                StatusCode::CREATED => {
                    created.latency.record(u64::try_from(began.elapsed().as_nanos())?)?;
                    sent = None;
                }
                StatusCode::TOO_MANY_REQUESTS => {
                    created.refused += 1;
                    sent = sent.filter(|_| self.retries);
                }
                other => anyhow::bail!("a create was answered {other}"),
            }
        }
        Ok(created)
    }
}

#[async_trait(?Send)]
impl BenchRow for NoisyUser {
    fn number(&self) -> u8 {
        17
    }

    fn title(&self) -> String {
        format!(
            "dry-run creates of {OTHERS} users, {SHARE} at a time each, beside one with {TIMES} times as many that retries at once"
        )
    }

    fn goals(&self) -> Vec<FigureGoal> {
        vec![FigureGoal::number(Who::Sqlite, SampleFigure::More("p99_times_that_at_share"), 2.0)]
    }

    fn takes(&self, who: Who) -> bool {
        matches!(who, Who::Sqlite | Who::Etcd | Who::Kube)
    }

    fn default_limits(&self) -> bool {
        true
    }

    fn lanes(&self) -> usize {
        1
    }

    async fn prepare(&self, subject: &Subject) -> Result<()> {
        let who = subject.server.who;
        let mut users = Vec::new();
        for number in 0..=OTHERS {
            let user = Arc::new(subject.server.connect_as(&format!("user-{number}"), LANES).await?);
            let object = user.object(&object::name(u64::from(u32::MAX) + number as u64), SMALL)?;
            let answer = user.try_create(0, object).await?;
            ensure!(answer == StatusCode::CREATED, "{}: the first create was answered {answer}", who.title());
            users.push(user);
        }
        self.users.borrow_mut().insert(who, users);
        Ok(())
    }

    async fn measure(&self, subject: &Subject) -> Result<Sample> {
        subject.server.forget_peak()?;
        LocalSet::new().run_until(self.run(subject)).await
    }

    async fn verify(&self, _: &Subject) -> Result<()> {
        Ok(())
    }
}
