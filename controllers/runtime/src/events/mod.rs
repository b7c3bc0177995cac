//! Events: recorded without waiting, aggregated, rate-limited and bounded. Events help people; work never
//! waits for one, and never fails because one is lost.

mod aggregate;
mod backlog;
mod owner;
mod writer;

use std::sync::Arc;

use drydock_api::text::cut_bytes;
use drydock_serving::tasks::ProgramTasks;
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::Notify;

use crate::cache::Cacheable;
use crate::clock::Clock;
use crate::metrics::Metrics;
use backlog::EventBacklog;
pub use owner::subject;

/// Most bytes of an event's message that kube-apiserver takes (k8s.io/kubernetes/pkg/apis/core/validation/events.go).
const MAX_MESSAGE: usize = 1024;

/// `type` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Nothing is wrong.
    Normal,
    /// Somebody should look.
    Warning,
}

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Regarding {
    /// `group/version`
    pub api_version: String,
    /// Kind
    pub kind: &'static str,
    /// Namespace, empty if cluster-scoped.
    pub namespace: String,
    /// Name
    pub name: String,
    /// UID
    pub uid: String,
    /// Version of the object at that time.
    pub resource_version: String,
    /// Who created the object, if it is one of those whose API server notes it.
    pub creator: String,
    /// Whether its events come before those of other objects of its creator, where there is no room for all.
    pub comes_first: bool,
}

impl Regarding {
    /// The object itself.
    pub fn of<T: Cacheable>(object: &T) -> Self {
        Self {
            api_version: crate::cache::resource::<T>().api_version,
            kind: T::KIND,
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
            resource_version: object.resource_version().to_owned(),
            creator: object.creator().to_owned(),
            comes_first: object.comes_first(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct RecordedEvent {
    regarding: Regarding,
    related: Option<Regarding>,
    severity: Severity,
    reason: &'static str,
    message: String,
    time: Timestamp,
}

/// Records events. Clones share the queue, in which each namespace, each creator of maintenances and each node has room of its
/// own: events beyond that are dropped and counted.
#[derive(Clone)]
pub struct EventRecorder {
    queue: Arc<EventQueue>,
    dropped: Counter,
    clock: Clock,
}

/// The queue between the recorders and the writer.
#[derive(Default)]
struct EventQueue {
    waiting: Mutex<EventBacklog>,
    added: Notify,
}

impl EventRecorder {
    /// Returns a recorder, and starts the task that writes its events until shutdown.
    pub fn start(
        client: kube::Client,
        component: &'static str,
        metrics: &Metrics,
        clock: Clock,
        tasks: &ProgramTasks,
    ) -> Self {
        let recorder = Self::disconnected(metrics, clock);
        let (queue, dropped) = (recorder.queue.clone(), recorder.dropped.clone());
        let stop = tasks.shutdown().clone();
        tasks.spawn("events", writer::write_events(client, component, queue, dropped, clock, stop));
        recorder
    }

    /// Returns a recorder without a task that writes its events; tests use it as it is.
    pub fn disconnected(metrics: &Metrics, clock: Clock) -> Self {
        let dropped = metrics.add(
            "drydock_events_dropped",
            "Events that were not written because too many waited, of their namespace, creator or node or of all, or because the write failed",
        );
        Self { queue: Arc::default(), dropped, clock }
    }

    /// Takes out the events that wait, and returns their reasons and messages; for tests.
    #[cfg(any(test, feature = "test-util"))]
    pub fn take_all(&self) -> Vec<(&'static str, String)> {
        let mut waiting = self.queue.waiting.lock();
        std::iter::from_fn(|| waiting.pop()).map(|event| (event.reason, event.message)).collect()
    }

    /// Records an event; never waits. Of a longer message the first 1,024 bytes are kept.
    pub fn publish(&self, regarding: Regarding, severity: Severity, reason: &'static str, message: String) {
        self.publish_related(regarding, None, severity, reason, message);
    }

    fn publish_related(
        &self,
        regarding: Regarding,
        related: Option<Regarding>,
        severity: Severity,
        reason: &'static str,
        message: String,
    ) {
        let event = RecordedEvent {
            regarding,
            related,
            severity,
            reason,
            message: cut_bytes(&message, MAX_MESSAGE),
            time: self.clock.now(),
        };
        if self.queue.waiting.lock().push(event).is_some() {
            self.dropped.inc();
        }
        self.queue.added.notify_one();
    }

    /// Records a Normal event about an object.
    pub fn normal<T: Cacheable>(&self, object: &T, reason: &'static str, message: String) {
        self.publish(Regarding::of(object), Severity::Normal, reason, message);
    }

    /// Records a Warning event about an object.
    pub fn warning<T: Cacheable>(&self, object: &T, reason: &'static str, message: String) {
        self.publish(Regarding::of(object), Severity::Warning, reason, message);
    }
}

impl EventQueue {
    /// Takes the next event, or waits for one. It may have one reader only, and is cancel safe.
    async fn next(&self) -> RecordedEvent {
        loop {
            if let Some(event) = self.waiting.lock().pop() {
                return event;
            }
            self.added.notified().await;
        }
    }
}

pub mod reasons {
    //! Reasons of events. Where a condition or a blocker says the same, the event has its reason.

    /// Every selected node is unschedulable.
    pub const CORDONED: &str = "Cordoned";
    /// The first pods of a maintenance are asked to leave.
    pub const DRAIN_STARTED: &str = "DrainStarted";
    /// All pods that a maintenance drains have left a node.
    pub const NODE_DRAINED: &str = "NodeDrained";
    /// A maintenance has released its nodes, but for those that others hold.
    pub const COMPLETED: &str = "Completed";
    /// Others make a node schedulable that is under maintenance.
    pub const CORDON_CONFLICT: &str = "CordonConflict";
    /// A maintenance goes further than its own plan says.
    pub const DRAIN_FAST_FORWARDED: &str = "DrainFastForwarded";
    /// The pods that replace evicted ones find no node.
    pub const PODS_UNSCHEDULABLE: &str = "PodsUnschedulable";
    /// Something keeps a pod from leaving.
    pub const EVICTION_BLOCKED: &str = "EvictionBlocked";
    /// Nothing keeps the pod any more.
    pub const EVICTION_UNBLOCKED: &str = "EvictionUnblocked";
    /// What a drain needs does not fit into the status of its maintenance; also the reason of its condition.
    pub const STATUS_TOO_LARGE: &str = "StatusTooLarge";
    /// It is not known whether a maintenance selects a node; also the reason of its condition.
    pub const NODE_LABELS_UNKNOWN: &str = "NodeLabelsUnknown";
    /// Others take the taint of a node away again and again while DaemonSet pods are drained from it.
    pub const TAINT_CONFLICT: &str = "TaintConflict";
    /// The clocks of the API server and of this program differ by too much.
    pub const CLOCK_SKEW: &str = "ClockSkew";
    /// Our API server refused writes because of the term of the lease.
    pub const FENCING_TOKEN_REFUSED: &str = "FencingTokenRefused";
    /// An interceptor other than the default ones has begun.
    pub const INTERCEPTOR_STARTED: &str = "InterceptorStarted";
    /// An interceptor was silent for too long, or had no time left, and is passed over.
    pub const INTERCEPTOR_TIMED_OUT: &str = "InterceptorTimedOut";
    /// Others have ended the turn of an interceptor, or its request, and it gets no other turn.
    pub const INTERCEPTOR_SKIPPED: &str = "InterceptorSkipped";
    /// An annotation or a field of the pod that should register an interceptor is wrong.
    pub const INVALID_INTERCEPTOR: &str = "InvalidInterceptor";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message was cut when it was written. Until then it waited whole, and the aggregator remembers 4,096 of them.
    #[test]
    fn a_message_is_cut_before_it_waits() {
        let recorder = EventRecorder::disconnected(&Metrics::new(), Clock::SYSTEM);
        recorder.normal(&crate::cache::Pod::default(), "R", "\u{e9}".repeat(1_000_000));
        let event = recorder.queue.waiting.lock().pop().map(|event| event.message);
        let event = event.unwrap_or_default();
        assert!(event.len() <= MAX_MESSAGE && event.capacity() <= MAX_MESSAGE);
        assert!(event.ends_with("\u{e9}\u{2026}"), "{event}");
    }
}
