//! Reports on requests: publishes events when something blocks an eviction or no longer does, and writes the
//! interceptor's entry in the status.

use std::collections::HashMap;
use std::time::Duration;

use drydock_api::eviction_request::maintenances::{clause_of, with_clause};
use drydock_api::eviction_request::{EvictionRequest, InterceptorStatus};
use drydock_interceptor_runtime::entry::{self, ProgressReport};
use drydock_runtime::events::Severity;
use drydock_runtime::events::reasons::EVICTION_UNBLOCKED;
use drydock_runtime::{Cacheable, CallError, ControllerContext, ObjectKey, Requeue};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::apply::{EntryWrite, send};
use super::ending_pod::gone;
use super::owner_notice::{OwnerEvent, OwnerNotice};

/// Writes the entries of one interceptor, publishes events for the owners of pods, and remembers both. The
/// cache may not show the last entry yet, and an entry that is made from an older one would start the turn
/// again, which the API server refuses.
pub(crate) struct Reporter {
    context: ControllerContext,
    /// Name of the interceptor.
    name: &'static str,
    /// Least time between two reports about one request, except before the last one.
    interval: Duration,
    /// The number of requests on which the interceptor acts bounds them.
    memories: Mutex<HashMap<ObjectKey, LastReport>>,
}

/// The last report about a request.
struct LastReport {
    /// UID of the request. A new request of the same name has none of the entries that were written to the
    /// old one, which may have been deleted while the watch was interrupted.
    uid: String,
    /// The entry as it was written last.
    written: Option<InterceptorStatus>,
    /// When it was written.
    written_at: Option<Instant>,
    /// What the pod's owner has had events about.
    notice: OwnerNotice,
}

/// Who is to learn of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Readers of the request alone: what blocks concerns the node or the DaemonSet.
    Readers,
    /// The owner of the pod too, by events: what blocks concerns this pod, and someone has to act.
    Owner,
}

/// Progress, with what the events about it need.
#[derive(Clone, Debug)]
pub(crate) struct ProgressUpdate {
    /// The content of the entry.
    pub(crate) progress: ProgressReport,
    /// Who gets events about it.
    pub(crate) audience: Audience,
    /// The words of the event about what blocks, if they differ from the message.
    pub(crate) words: Option<String>,
    /// When the budget that blocks last allowed an eviction.
    pub(crate) last_eviction: Option<Timestamp>,
}

impl ProgressUpdate {
    /// Progress whose events contain its message.
    pub(crate) fn of(progress: ProgressReport, audience: Audience) -> Self {
        Self { progress, audience, words: None, last_eviction: None }
    }
}

/// How a report ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportOutcome {
    /// When to look again, if nothing changes before.
    pub(crate) wake: Option<Timestamp>,
    /// Whether the entry was refused. The cache soon shows that the turn is over, or the entry from which to
    /// make the next one.
    pub(crate) is_refused: bool,
}

impl Reporter {
    pub(crate) fn new(context: ControllerContext, name: &'static str, interval: Duration) -> Self {
        Self { context, name, interval, memories: Mutex::default() }
    }

    /// Whether a report about the request is remembered.
    pub(crate) fn knows(&self, key: &ObjectKey) -> bool {
        self.memories.lock().contains_key(key)
    }

    /// Forgets a request, because the turn is over.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.memories.lock().remove(key);
    }

    /// Publishes events for the pod's owner, and writes the entry if it is the interceptor's turn.
    pub(crate) async fn publish_and_report(
        &self,
        request: &EvictionRequest,
        update: ProgressUpdate,
        now: Timestamp,
    ) -> Result<ReportOutcome, CallError> {
        let ProgressUpdate { mut progress, audience, words, last_eviction } = update;
        let event = self.remember(request, |memory| {
            let blocked = progress.blocked.as_ref().filter(|_| audience == Audience::Owner);
            let event = memory.notice.update(blocked, last_eviction, now);
            progress.last_blocked = memory.notice.last().cloned();
            event
        });
        let later = self.publish(request, event, words.as_ref().unwrap_or(&progress.message), &progress);
        let reported = self.report(request, progress, now).await?;
        Ok(ReportOutcome { wake: earliest(later, reported.wake), ..reported })
    }

    /// Whether the owner had an event about what blocks that the entry does not say yet: for an hour the request tells of it,
    /// which depends on the entry.
    pub(crate) fn owes_report(&self, request: &EvictionRequest) -> bool {
        let memories = self.memories.lock();
        let memory = memories.get(&request.key()).filter(|memory| memory.uid == request.metadata.uid);
        let told = memory.and_then(|memory| memory.notice.last().cloned());
        drop(memories);
        told.zip(self.entry(request)).is_some_and(|(told, entry)| {
            entry.last_blocked.as_deref().is_none_or(|said| !entry::is_same_state(said, &told))
        })
    }

    /// Publishes that nothing blocks any more, if an event has said that something does. The pod is gone, and the end of
    /// its request says so: no entry is written.
    pub(crate) fn publish_end(&self, request: &EvictionRequest, now: Timestamp) {
        let event = self.remember(request, |memory| memory.notice.update(None, None, now));
        let progress = gone();
        self.publish(request, event, &progress.message, &progress);
    }

    /// Declines the turn.
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

    /// Publishes an event: one about what blocks, on the request and on the pod, for its owner; one that
    /// nothing blocks any more, on the request alone, because the pod leaves then. Returns when an event is
    /// due later.
    fn publish(
        &self,
        request: &EvictionRequest,
        event: OwnerEvent,
        words: &str,
        progress: &ProgressReport,
    ) -> Option<Timestamp> {
        let recorder = &self.context.recorder;
        match event {
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

    /// Writes the next entry, if it is the interceptor's turn and something is to be written.
    async fn report(
        &self,
        request: &EvictionRequest,
        progress: ProgressReport,
        now: Timestamp,
    ) -> Result<ReportOutcome, CallError> {
        let Some(old) = self.entry(request) else { return Ok(ReportOutcome::until(None)) };
        let is_last = progress.completed;
        let Some(entry) = entry::next_entry(&old, &with_reason(progress, request), now) else {
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

    /// The entry as it was last written or as the cache shows it; none if it is not the interceptor's turn.
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
            let notice = request.interceptor(self.name).map(OwnerNotice::from_status).unwrap_or_default();
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

/// Puts the reason for the request, from its annotation, at the beginning of the message.
fn with_reason(progress: ProgressReport, request: &EvictionRequest) -> ProgressReport {
    let message = with_clause(&clause_of(request), &progress.message);
    ProgressReport { message, ..progress }
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
