//! What is told of a request: the messages, and our entry in its status.

use std::collections::HashMap;
use std::time::Duration;

use drydock_api::eviction_request::blocked::{
    ADMISSION_WEBHOOK, DAEMON_SET_RETURNS, NODE_UPDATE_REFUSED, OTHER,
};
use drydock_api::eviction_request::maintenances::{clause_of, with_clause};
use drydock_api::eviction_request::{Blocked, EvictionRequest, InterceptorStatus};
use drydock_api::text::times as in_words;
use drydock_api::time::format_seconds;
use drydock_runtime::events::Severity;
use drydock_runtime::events::reasons::{EVICTION_BLOCKED, EVICTION_UNBLOCKED};
use drydock_runtime::{Cacheable, Context, ObjectKey, Outcome, Pod};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::{Error, NAME};
use crate::imperative::answer::{self, Answer, named_webhook};
use crate::owner_notice::{OwnerNotice, Tell};
use crate::report::{self, News, Sent};
use crate::taint::{Awaited, TAINT};
use crate::terminating;

/// Writes our entries, tells the pod's owner, and remembers both: the cache may not show an entry yet, and one that is made
/// from the one before would start the turn again, which is refused.
#[derive(Default)]
pub(super) struct Reporter {
    /// No more than there are requests that are ours to act on.
    memories: Mutex<HashMap<ObjectKey, Memory>>,
}

/// What is remembered of a request.
struct Memory {
    /// UID of the request.
    uid: String,
    /// Our entry as it was written last.
    written: Option<InterceptorStatus>,
    /// What the pod's owner was told of what blocks.
    told: OwnerNotice,
}

impl Memory {
    fn of(request: &EvictionRequest) -> Self {
        let told = request.interceptor(NAME).map(OwnerNotice::stored).unwrap_or_default();
        Self { uid: request.metadata.uid.clone(), written: None, told }
    }
}

/// Whom news concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// Whoever reads the request: what blocks is a matter of the node or of the DaemonSet.
    Readers,
    /// The owner of the pod too, by events: what blocks holds this pod, and somebody has to do something.
    Owner,
}

impl Reporter {
    /// Whether something is remembered of the request.
    pub(super) fn knows(&self, key: &ObjectKey) -> bool {
        self.memories.lock().contains_key(key)
    }

    /// The turn is over.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.memories.lock().remove(key);
    }

    /// Tells the pod's owner what concerns him, whoever has the turn; and reports, if it is ours.
    pub(super) async fn tell(
        &self,
        context: &Context,
        request: &EvictionRequest,
        news: &News,
        audience: Audience,
        now: Timestamp,
    ) -> Result<Outcome, Error> {
        let mut news = news.clone();
        let later = self.tell_owner(context, request, &mut news, audience, now);
        let outcome = match self.entry(request) {
            None => Outcome::Done,
            Some(old) => match report::entry(&old, &news.of(request), now) {
                Some(entry) => self.send(context, request, entry, now).await?,
                None => at(report::next_heartbeat(&old), now),
            },
        };
        Ok(later.map_or(outcome, |later| sooner(outcome, later, now)))
    }

    /// Events, as imperative-eviction records them. Returns when to come back for one; the news says from then on that the
    /// owner is told.
    fn tell_owner(
        &self,
        context: &Context,
        request: &EvictionRequest,
        news: &mut News,
        audience: Audience,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let blocked = news.blocked.as_ref().filter(|_| audience == Audience::Owner);
        let tell = self.remember(request, |memory| {
            let tell = memory.told.update(blocked, None, now);
            (tell, memory.told.last().cloned())
        });
        let (tell, told) = tell;
        news.told = told;
        match tell {
            Tell::Nothing => None,
            Tell::Later(at) => Some(at),
            Tell::Blocked => {
                context.recorder.tell_owner(request, Severity::Warning, EVICTION_BLOCKED, &news.message);
                None
            }
            Tell::Unblocked => {
                context.recorder.tell_readers(request, Severity::Normal, EVICTION_UNBLOCKED, &news.message);
                None
            }
        }
    }

    fn remember<R>(&self, request: &EvictionRequest, change: impl FnOnce(&mut Memory) -> R) -> R {
        let mut memories = self.memories.lock();
        let memory = memories.entry(request.key()).or_insert_with(|| Memory::of(request));
        if memory.uid != request.metadata.uid {
            *memory = Memory::of(request);
        }
        change(memory)
    }

    /// Passes the turn on: the pod is none of ours.
    pub(super) async fn decline(
        &self,
        context: &Context,
        request: &EvictionRequest,
        now: Timestamp,
    ) -> Result<Outcome, Error> {
        let why = with_clause(&clause_of(request), "The pod does not belong to a DaemonSet.");
        match self.entry(request).and_then(|old| report::decline(&old, why, now)) {
            Some(entry) => self.send(context, request, entry, now).await,
            None => Ok(Outcome::Done),
        }
    }

    /// Our entry as it was written last, while the turn is ours.
    fn entry(&self, request: &EvictionRequest) -> Option<InterceptorStatus> {
        let shown = request.active_interceptor_status().filter(|active| active.name == NAME)?;
        let memories = self.memories.lock();
        let memory = memories.get(&request.key()).filter(|memory| memory.uid == request.metadata.uid);
        Some(memory.and_then(|memory| memory.written.as_ref()).unwrap_or(shown).clone())
    }

    async fn send(
        &self,
        context: &Context,
        request: &EvictionRequest,
        entry: InterceptorStatus,
        now: Timestamp,
    ) -> Result<Outcome, Error> {
        if !context.may_write() {
            return Err(Error::NoLease);
        }
        match report::send(context, request, &entry).await.map_err(Error::Report)? {
            Sent::Written => {
                let next = at(report::next_heartbeat(&entry), now);
                self.remember(request, |memory| memory.written = Some(entry));
                Ok(next)
            }
            // If the turn is over, the cache says so soon. Else it knows better what stands there.
            Sent::NotOurs => {
                self.remember(request, |memory| memory.written = None);
                Ok(Outcome::Retry)
            }
        }
    }
}

/// When to look again; never, if there is no such time.
pub(super) fn at(wake: Option<Timestamp>, now: Timestamp) -> Outcome {
    let wait = |wake: Timestamp| wake.duration_since(now).max(SignedDuration::from_millis(10));
    wake.map_or(Outcome::Done, |wake| Outcome::After(Duration::try_from(wait(wake)).unwrap_or_default()))
}

/// The earlier of an outcome's wake-up and `until`.
pub(super) fn sooner(outcome: Outcome, until: Timestamp, now: Timestamp) -> Outcome {
    match (outcome, at(Some(until), now)) {
        (Outcome::After(a), Outcome::After(b)) => Outcome::After(a.min(b)),
        (Outcome::Retry, _) => Outcome::Retry,
        (_, wait) => wait,
    }
}

/// The pod is gone.
pub(super) fn gone() -> News {
    News { message: "The pod has terminated.".to_owned(), completed: true, ..News::default() }
}

/// The seed's words, and what keeps a pod that is overdue. `why` names the maintenances that cover the pod.
pub(super) fn terminating(pod: &Pod, why: &str, now: Timestamp) -> News {
    let owner = owner(pod);
    let because = if why.is_empty() { String::new() } else { format!(" due to node maintenance ({why})") };
    let mut message = format!("{owner} is terminating the pod{because}.");
    let blocked = terminating::overdue(pod, now).map(|(words, blocked)| {
        message = format!("{message} {words}");
        blocked
    });
    News { message, expected_finish: pod.deletion_timestamp, blocked, ..News::default() }
}

/// The taint that keeps the DaemonSet away does not stand, though it is asked for.
pub(super) fn awaits_taint(pod: &Pod, awaited: &Awaited) -> News {
    let (node, owner) = (&pod.node_name, owner(pod));
    let (reason, why) = match awaited {
        Awaited { refused: Some(words), .. } => {
            (NODE_UPDATE_REFUSED, format!("The taint cannot be set: {words}"))
        }
        Awaited { taken: Some((times, began)), .. } => (
            OTHER,
            format!(
                "Others have taken it away {} since {}; it is set again, later each time. Whoever manages the \
                 node's taints should leave this one alone.",
                in_words(*times),
                format_seconds(*began)
            ),
        ),
        Awaited { since, .. } => (
            OTHER,
            format!("It is to be set since {}, and the node does not show it.", format_seconds(*since)),
        ),
    };
    let message = format!(
        "Waiting for the taint {TAINT} on node {node}: without it DaemonSet {owner} would put the pod back. {why}"
    );
    let blocked = Blocked { reason: reason.to_owned(), name: node.clone(), ..Default::default() };
    News { message, blocked: Some(blocked), ..News::default() }
}

/// The host refuses the deletion, if it does so for a reason that does not pass by itself.
pub(super) fn refused(error: &kube::Error) -> Option<News> {
    let (reason, name, words) = match answer::from_error(error) {
        Answer::Admission(words) => (ADMISSION_WEBHOOK, named_webhook(&words).to_owned(), words),
        Answer::Refused(words) => (OTHER, String::new(), words),
        _ => return None,
    };
    let blocked = Blocked { reason: reason.to_owned(), name, ..Default::default() };
    Some(News {
        message: format!("The pod cannot be deleted: {words}"),
        blocked: Some(blocked),
        ..News::default()
    })
}

/// The DaemonSet comes back as fast as its pods go, and the next deletion waits. Said of those only that tolerate our taint: the others do what they are
/// for until it stands.
pub(super) fn returned(pod: &Pod, times: u32) -> Option<News> {
    let in_a_row = if times == 1 { String::new() } else { format!(", {} in a row", in_words(times)) };
    let message = format!(
        "DaemonSet {} has put a new pod on the node after its pod was deleted{in_a_row}: it tolerates the \
         taint {TAINT}. It is deleted again, later each time; a nodeAffinity or a narrower toleration of the DaemonSet \
         ends this.",
        owner(pod)
    );
    let blocked =
        Blocked { reason: DAEMON_SET_RETURNS.to_owned(), name: owner(pod).to_owned(), ..Default::default() };
    pod.tolerates_drain_taint.then(|| News { message, blocked: Some(blocked), ..News::default() })
}

/// Name of the DaemonSet.
fn owner(pod: &Pod) -> &str {
    pod.controller.as_ref().map_or("", |owner| owner.name.as_str())
}

#[cfg(test)]
#[path = "telling_tests.rs"]
mod tests;
