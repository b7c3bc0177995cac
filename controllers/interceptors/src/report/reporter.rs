//! Reports on requests: events when something blocks an eviction or no longer does, and the interceptor's entry in the status.

use std::collections::HashMap;
use std::time::Duration;

use drydock_api::eviction_request::maintenances::{clause_of, with_clause};
use drydock_api::eviction_request::{EvictionRequest, InterceptorStatus};
use drydock_runtime::events::Severity;
use drydock_runtime::events::reasons::EVICTION_UNBLOCKED;
use drydock_runtime::{Cacheable, CallError, ControllerContext, ObjectKey, Requeue};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::apply::{EntryWrite, send};
use super::entry::{self, ProgressReport};
use super::owner_notice::{OwnerEvent, OwnerNotice};

/// Writes the entries of one interceptor, publishes events for the owners of pods, and remembers both: the cache may not
/// show the last entry yet, and an entry made from an older one would start the turn again, which the API server refuses.
pub(crate) struct Reporter {
    context: ControllerContext,
    /// Name of the interceptor.
    name: &'static str,
    /// Reports of one request are not closer than this, but for the last.
    interval: Duration,
    /// No more than there are requests that are the interceptor's to act on.
    memories: Mutex<HashMap<ObjectKey, LastReport>>,
}

/// The last report about a request, until the cache shows it.
struct LastReport {
    /// UID of the request: one that was made anew under the name has none of the entries that were written to the one before,
    /// which may have gone while the watch was broken off.
    uid: String,
    /// The entry as it was written last.
    written: Option<InterceptorStatus>,
    /// When.
    written_at: Option<Instant>,
    /// Which blocks the pod's owner has events about.
    notice: OwnerNotice,
}

/// The readers of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Readers of the request alone: what blocks is a matter of the node or of the DaemonSet.
    Readers,
    /// The owner of the pod too, by events: what blocks holds this pod, and somebody has to do something.
    Owner,
}

/// Progress, and what the events about it need.
#[derive(Clone, Debug)]
pub(crate) struct ProgressNews {
    /// What the entry is to say.
    pub(crate) progress: ProgressReport,
    /// Who reads it.
    pub(crate) audience: Audience,
    /// The words of the event that something blocks, if they are not the message.
    pub(crate) words: Option<String>,
    /// When the budget that blocks let an eviction go last.
    pub(crate) last_eviction: Option<Timestamp>,
}

impl ProgressNews {
    /// Progress whose events have its message.
    pub(crate) fn of(progress: ProgressReport, audience: Audience) -> Self {
        Self { progress, audience, words: None, last_eviction: None }
    }
}

/// How a report ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportOutcome {
    /// When to look again, if nothing changes before.
    pub(crate) wake: Option<Timestamp>,
    /// Whether the entry was refused. If the turn is over, the cache says so soon; else it knows better what stands there.
    pub(crate) is_refused: bool,
}

impl Reporter {
    pub(crate) fn new(context: ControllerContext, name: &'static str, interval: Duration) -> Self {
        Self { context, name, interval, memories: Mutex::default() }
    }

    /// Whether something is remembered of the request.
    pub(crate) fn knows(&self, key: &ObjectKey) -> bool {
        self.memories.lock().contains_key(key)
    }

    /// The turn is over.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.memories.lock().remove(key);
    }

    /// Publishes the events for the pod's owner; and, if it is the interceptor's turn, writes its entry.
    pub(crate) async fn publish_and_report(
        &self,
        request: &EvictionRequest,
        news: ProgressNews,
        now: Timestamp,
    ) -> Result<ReportOutcome, CallError> {
        let ProgressNews { mut progress, audience, words, last_eviction } = news;
        let tell = self.remember(request, |memory| {
            let blocked = progress.blocked.as_ref().filter(|_| audience == Audience::Owner);
            let tell = memory.notice.update(blocked, last_eviction, now);
            progress.told = memory.notice.last().cloned();
            tell
        });
        let later = self.record(request, tell, words.as_ref().unwrap_or(&progress.message), &progress);
        let reported = self.report(request, progress, now).await?;
        Ok(ReportOutcome { wake: earliest(later, reported.wake), ..reported })
    }

    /// Passes the turn on.
    pub(crate) async fn decline(
        &self,
        request: &EvictionRequest,
        why: &str,
        now: Timestamp,
    ) -> Result<ReportOutcome, CallError> {
        let why = with_clause(&clause_of(request), why);
        match self.entry(request).and_then(|old| entry::decline(&old, why, now)) {
            Some(entry) => self.send(request, entry).await,
            None => Ok(ReportOutcome::until(None)),
        }
    }

    /// Events: once when something blocks, and again when something else does, on the request and on its pod, whose owner has
    /// to know; on the request alone when nothing does any more, as the pod goes then. Returns when to come back for one.
    fn record(
        &self,
        request: &EvictionRequest,
        tell: OwnerEvent,
        words: &str,
        progress: &ProgressReport,
    ) -> Option<Timestamp> {
        let recorder = &self.context.recorder;
        match tell {
            OwnerEvent::Nothing => {}
            OwnerEvent::Later(at) => return Some(at),
            OwnerEvent::Blocked => {
                let blocked = progress.blocked.as_ref();
                blocked
                    .into_iter()
                    .for_each(|blocked| recorder.publish_block_to_owner(request, blocked, words));
            }
            OwnerEvent::Unblocked => {
                recorder.publish_to_readers(request, Severity::Normal, EVICTION_UNBLOCKED, &progress.message);
            }
        }
        None
    }

    /// Writes what is new, while the turn is the interceptor's.
    async fn report(
        &self,
        request: &EvictionRequest,
        progress: ProgressReport,
        now: Timestamp,
    ) -> Result<ReportOutcome, CallError> {
        let Some(old) = self.entry(request) else { return Ok(ReportOutcome::until(None)) };
        let is_last = progress.completed;
        let Some(entry) = entry::entry(&old, &progress.of(request), now) else {
            return Ok(ReportOutcome::until(entry::next_heartbeat(&old)));
        };
        let written_at = self.remember(request, |memory| memory.written_at);
        let wait = written_at.map_or(Duration::ZERO, |at| self.interval.saturating_sub(at.elapsed()));
        if wait.is_zero() || is_last {
            self.send(request, entry).await
        } else {
            Ok(ReportOutcome::until(now.checked_add(wait).ok()))
        }
    }

    /// The entry as it was written last, while the turn is the interceptor's.
    fn entry(&self, request: &EvictionRequest) -> Option<InterceptorStatus> {
        let shown = request.active_interceptor_status().filter(|active| active.name == self.name)?;
        let memories = self.memories.lock();
        let memory = memories.get(&request.key()).filter(|memory| memory.uid == request.metadata.uid);
        Some(memory.and_then(|memory| memory.written.as_ref()).unwrap_or(shown).clone())
    }

    async fn send(
        &self,
        request: &EvictionRequest,
        entry: InterceptorStatus,
    ) -> Result<ReportOutcome, CallError> {
        self.context.check_lease()?;
        match send(&self.context, request, &entry).await.map_err(CallError::of("reporting"))? {
            EntryWrite::Written => {
                let next = entry::next_heartbeat(&entry);
                self.remember(request, |memory| {
                    (memory.written, memory.written_at) = (Some(entry), Some(Instant::now()));
                });
                Ok(ReportOutcome::until(next))
            }
            EntryWrite::NotOurs => {
                self.remember(request, |memory| memory.written = None);
                Ok(ReportOutcome { wake: None, is_refused: true })
            }
        }
    }

    fn remember<R>(&self, request: &EvictionRequest, change: impl FnOnce(&mut LastReport) -> R) -> R {
        let new = || {
            let notice = request.interceptor(self.name).map(OwnerNotice::stored).unwrap_or_default();
            LastReport { uid: request.metadata.uid.clone(), written: None, written_at: None, notice }
        };
        let mut memories = self.memories.lock();
        let memory = memories.entry(request.key()).or_insert_with(new);
        if memory.uid != request.metadata.uid {
            *memory = new();
        }
        change(memory)
    }
}

impl ReportOutcome {
    fn until(wake: Option<Timestamp>) -> Self {
        Self { wake, is_refused: false }
    }
}

/// The earlier of two times, if there is one.
pub(crate) fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

/// When to look again; never, if there is no such time.
pub(crate) fn at(wake: Option<Timestamp>, now: Timestamp) -> Requeue {
    let wait = |wake: Timestamp| wake.duration_since(now).max(SignedDuration::from_millis(10));
    wake.map_or(Requeue::Never, |wake| Requeue::After(Duration::try_from(wait(wake)).unwrap_or_default()))
}

#[cfg(test)]
#[path = "reporter_tests.rs"]
mod tests;
