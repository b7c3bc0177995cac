//! Tells of one request: events when something blocks it or no longer does, and its entry in the status.

use std::time::Duration;

use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::ObjectKey;
use drydock_runtime::events::Severity;
use drydock_runtime::events::reasons::{EVICTION_BLOCKED, EVICTION_UNBLOCKED};
use jiff::Timestamp;
use tokio::time::Instant;

use super::NAME;
use super::worker::{Error, Seen, Worker};
use crate::owner_notice::Tell;
use crate::report::{self, News, Sent};

/// Reports of one request are not closer than this, but for the first.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

impl Worker {
    /// Events: once when something blocks, and again when something else does, on the request and on its pod, whose owner has
    /// to know; on the request alone when nothing does any more, as the pod goes then. Returns when to come back for one. The
    /// news says from then on that the owner is told.
    pub(super) fn tell(
        &self,
        key: &ObjectKey,
        request: &EvictionRequest,
        seen: &Seen,
        news: &mut News,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let (tell, words) = self.look_at_news(key, seen, news, now)?;
        let recorder = &self.context.recorder;
        match tell {
            Tell::Nothing => None,
            Tell::Later(at) => Some(at),
            Tell::Blocked => {
                recorder.tell_owner(request, Severity::Warning, EVICTION_BLOCKED, &words);
                None
            }
            Tell::Unblocked => {
                recorder.tell_readers(request, Severity::Normal, EVICTION_UNBLOCKED, &words);
                None
            }
        }
    }

    /// Decides what is to be told now, and in which words.
    fn look_at_news(
        &self,
        key: &ObjectKey,
        seen: &Seen,
        news: &mut News,
        now: Timestamp,
    ) -> Option<(Tell, String)> {
        let mut board = self.board.lock();
        let let_go = board.let_go.last(&key.namespace, news.blocked.as_ref());
        let memory = board.get_mut(key)?;
        let tell = memory.told.update(news.blocked.as_ref(), let_go, now);
        news.told = memory.told.last().cloned();
        let refused = memory.tried.refused.as_ref().filter(|_| !is_terminating(seen));
        let words = match (tell, refused) {
            (Tell::Nothing | Tell::Later(_), _) => String::new(),
            (Tell::Blocked, Some(refused)) => refused.why(&seen.gate).1,
            (Tell::Blocked | Tell::Unblocked, _) => news.message.clone(),
        };
        Some((tell, words))
    }

    /// Writes what is new; returns when to come back for the rest or for a heartbeat.
    pub(super) async fn report(
        &self,
        key: &ObjectKey,
        request: &EvictionRequest,
        news: &News,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Error> {
        let (old, wrote_at) = {
            let mut board = self.board.lock();
            let memory = board.get_mut(key);
            let written = memory.as_ref().and_then(|m| m.written.clone());
            (written.or_else(|| request.interceptor(NAME).cloned()), memory.and_then(|m| m.written_at))
        };
        let Some(old) = old else { return Ok(None) };
        let Some(entry) = report::entry(&old, &news.clone().of(request), now) else {
            return Ok(report::next_heartbeat(&old));
        };
        let wait = wrote_at.map_or(Duration::ZERO, |at| REPORT_INTERVAL.saturating_sub(at.elapsed()));
        if !wait.is_zero() && !news.completed {
            return Ok(now.checked_add(wait).ok());
        }
        if !self.context.may_write() {
            return Err(Error::NoLease);
        }
        let sent = report::send(&self.context, request, &entry).await.map_err(Error::Report)?;
        if sent == Sent::NotOurs {
            // If the turn is over, the cache says so by then. Else it knows better what stands there.
            if let Some(memory) = self.board.lock().get_mut(key) {
                memory.written = None;
            }
            return Ok(now.checked_add(report::REFUSED).ok());
        }
        let next = report::next_heartbeat(&entry);
        if let Some(memory) = self.board.lock().get_mut(key) {
            memory.written = Some(entry);
            memory.written_at = Some(Instant::now());
        }
        Ok(next)
    }
}

fn is_terminating(seen: &Seen) -> bool {
    seen.pod.as_ref().is_some_and(|pod| pod.is_terminating())
}
