//! Serves one turn: runs what the author wrote, and keeps the entry in the request's status up to date.
//!
//! ```text
//!   read the request ──▶ run the author's future ──returns──▶ write completionTime, until it is accepted
//!                          │        ▲
//!                          │        └── error: pause, and run it again, without heartbeats
//!                          └── meanwhile: write the start, what is said, and heartbeats
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use drydock_api::eviction_request::{EvictionRequest, InterceptorStatus};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use crate::entry::{self, ProgressReport, is_turn_of};
use crate::requests::{RequestClient, RequestError};
use crate::runtime::RequestKey;
use crate::turn::{EvictionTurn, TurnEnd};

/// What the author wrote; an error is its text.
pub(crate) type Act =
    Arc<dyn Fn(EvictionTurn) -> Pin<Box<dyn Future<Output = Result<TurnEnd, String>> + Send>> + Send + Sync>;

/// A turn that says nothing is begun after this; one that is declined before is never begun.
const BEGIN_AFTER: Duration = Duration::from_secs(1);
/// Least time between two writes, but for the last.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after the first failure, of a request or of the author's future. It doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Characters of the message of a report that is sent again.
const SHORT_MESSAGE: usize = 500;

/// The task of one turn.
pub(crate) struct TurnTask {
    requests: Arc<RequestClient>,
    act: Act,
    key: RequestKey,
}

/// A turn that is under way.
struct ServedTurn {
    task: TurnTask,
    request: EvictionRequest,
    /// The entry as the API server has it, as far as is known.
    entry: watch::Sender<InterceptorStatus>,
    progress: watch::Receiver<ProgressReport>,
    sender: watch::Sender<ProgressReport>,
    work: JoinSet<Result<TurnEnd, String>>,
    /// How the author's future ended.
    end: Option<TurnEnd>,
    /// How often the author's future has failed.
    failures: u32,
    /// How many writes in a row have failed.
    unwritten: u32,
}

impl TurnTask {
    pub(crate) fn new(requests: Arc<RequestClient>, act: Act, key: RequestKey) -> Self {
        Self { requests, act, key }
    }

    /// Serves the turn until it is over. Dropped, it drops the author's future.
    pub(crate) async fn serve(self) {
        // The event of the watch may be older than our own last write.
        if let Some(request) = self.read().await {
            ServedTurn::new(self, request).serve().await;
        }
    }

    /// Reads the request until that succeeds; none if it is not, or no longer, the interceptor's turn.
    async fn read(&self) -> Option<EvictionRequest> {
        let (namespace, name) = &self.key;
        for failures in 0.. {
            match self.requests.read(namespace, name).await {
                Ok(request) => return is_turn_of(&request, &self.requests.interceptor).then_some(request),
                Err(RequestError::Gone) => return None,
                Err(error) => warn!("reading {namespace}/{name}: {error}; it is tried again"),
            }
            sleep(pause_after(failures)).await;
        }
        None
    }
}

impl ServedTurn {
    fn new(task: TurnTask, request: EvictionRequest) -> Self {
        let entry = request.interceptor(&task.requests.interceptor).cloned().unwrap_or_default();
        let known = ProgressReport {
            message: entry.message.clone(),
            expected_finish: entry.expected_finish_time,
            blocked: entry.blocked.as_deref().cloned(),
            ..ProgressReport::default()
        };
        let (sender, progress) = watch::channel(known);
        let (work, end) = (JoinSet::new(), None);
        let entry = watch::Sender::new(entry);
        Self { task, request, entry, progress, sender, work, end, failures: 0, unwritten: 0 }
    }

    async fn serve(mut self) {
        self.start_work(Duration::ZERO);
        let mut earliest = Instant::now();
        let mut wanted = earliest + BEGIN_AFTER;
        loop {
            tokio::select! {
                Some(ended) = self.work.join_next() => {
                    self.ended(ended);
                    wanted = Instant::now();
                    if self.unwritten == 0 {
                        earliest = wanted;
                    }
                }
                Ok(()) = self.progress.changed() => wanted = Instant::now(),
                () = sleep_until(wanted.max(earliest)) => {
                    let Some(next) = self.write().await else { return };
                    let now = Instant::now();
                    (wanted, earliest) = (now + next, now + self.pause());
                }
            }
        }
    }

    /// How long the next write waits at least.
    fn pause(&self) -> Duration {
        match (self.unwritten.checked_sub(1), &self.end) {
            (Some(failures), _) => pause_after(failures),
            (None, None) => WRITE_INTERVAL,
            (None, Some(_)) => Duration::ZERO,
        }
    }

    fn start_work(&mut self, pause: Duration) {
        let is_resumed = self.entry.borrow().start_time.is_some() || self.failures > 0;
        let client = self.task.requests.client.clone();
        let (sender, accepted) = (self.sender.clone(), self.entry.subscribe());
        let turn = EvictionTurn::new(client, self.request.clone(), is_resumed, sender, accepted);
        let act = self.task.act.clone();
        self.work.spawn(async move {
            sleep(pause).await;
            act(turn).await
        });
    }

    fn ended(&mut self, ended: Result<Result<TurnEnd, String>, JoinError>) {
        match ended.unwrap_or_else(|panic| Err(panic.to_string())) {
            Ok(end) => self.end = Some(end),
            Err(error) => {
                warn!("acting on {}/{}: {error}; it is tried again", self.task.key.0, self.task.key.1);
                self.sender
                    .send_modify(|progress| progress.message = format!("failed, trying again: {error}"));
                self.start_work(pause_after(self.failures));
                self.failures += 1;
            }
        }
    }

    /// Writes what is to be written. Returns after how long the next write is due, or none if the turn is over.
    async fn write(&mut self) -> Option<Duration> {
        let Some(next) = self.next() else { return Some(self.until_heartbeat()) };
        match self.task.requests.write(&self.request, &next).await {
            Ok(request) => {
                self.unwritten = 0;
                let message = next.message.clone();
                self.entry.send_replace(next);
                let is_over = !is_turn_of(&request, &self.task.requests.interceptor);
                if is_over {
                    info!("the turn in {}/{} has ended: {}", self.task.key.0, self.task.key.1, message);
                }
                (!is_over).then(|| if self.end.is_some() { Duration::ZERO } else { self.until_heartbeat() })
            }
            Err(RequestError::Gone) => None,
            Err(error) => {
                self.unwritten += 1;
                warn!("reporting on {}/{}: {error}; it is tried again", self.task.key.0, self.task.key.1);
                if matches!(error, RequestError::Refused(_)) {
                    self.request = self.task.read().await?;
                    self.entry.send_replace(self.request.interceptor(&next.name)?.clone());
                }
                Some(Duration::ZERO)
            }
        }
    }

    /// The next entry, if there is something to write.
    fn next(&mut self) -> Option<InterceptorStatus> {
        let now = self.task.requests.now();
        let mut progress = self.progress.borrow_and_update().clone();
        // A namespace or a store that is full takes short reports only.
        if self.unwritten > 0 {
            progress.message = progress.message.chars().take(SHORT_MESSAGE).collect();
        }
        let old = self.entry.borrow();
        let begun = old.start_time.is_some();
        match &self.end {
            Some(TurnEnd::Declined(why)) => return entry::decline(&old, why.clone(), now),
            Some(TurnEnd::Done(message)) => {
                // A turn that was not begun would be declined by its completion.
                let blocked = None;
                progress = ProgressReport { message: message.clone(), blocked, completed: begun, ..progress };
            }
            None => {}
        }
        let mut next = entry::next_entry(&old, &progress, now)?;
        if self.failures > 0 && self.end.is_none() && begun {
            next.heartbeat_time = old.heartbeat_time;
        }
        (next != *old).then_some(next)
    }

    fn until_heartbeat(&self) -> Duration {
        let now = self.task.requests.now();
        let next = entry::next_heartbeat(&self.entry.borrow()).filter(|_| self.failures == 0);
        let wait = next.map_or(entry::HEARTBEAT_INTERVAL, |next| next.duration_since(now));
        Duration::try_from(wait).unwrap_or_default()
    }
}

fn pause_after(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE)
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
