//! What the machine gets beside the request, and what it returns.

use std::collections::BTreeMap;
use std::time::Duration;

use drydock_api::eviction_request::EvictionRequestStatus;
use drydock_api::eviction_request::interceptors::AllowedNames;
use drydock_api::eviction_request::transitions::DEFAULT_HEARTBEAT_DEADLINE;
use drydock_runtime::Pod;
use jiff::Timestamp;

/// The settings of the machine.
#[derive(Clone, Debug)]
pub struct Config {
    /// How long an interceptor may be silent; the same as the API server's.
    pub heartbeat_deadline: Duration,
    /// How long finished requests are kept for requesters that do not withdraw; none keeps them forever.
    pub retention: Option<Duration>,
    /// How long canceled requests are kept: those without requesters, and those that failed validation.
    pub canceled_grace: Duration,
    /// How many finished requests a namespace keeps; if it has more, the oldest are removed at once.
    pub max_finished: usize,
    /// Names under k8s.io that may intercept.
    pub allowed: AllowedNames,
    /// How long the turns of a pod's own interceptors may take together, whatever they report; none bounds nothing.
    pub max_interception: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            heartbeat_deadline: DEFAULT_HEARTBEAT_DEADLINE,
            retention: Some(Duration::from_secs(24 * 3600)),
            canceled_grace: Duration::from_secs(5 * 60),
            max_finished: 5_000,
            allowed: AllowedNames::default(),
            max_interception: None,
        }
    }
}

/// The target pod as the cache has it, by its name and UID.
#[derive(Clone, Copy, Debug)]
pub enum TargetPod<'a> {
    /// It is there.
    Present(&'a Pod),
    /// The cache does not have it, or has another pod under its name. The cache may lag.
    NotCached,
    /// The API server says that it is not there.
    Absent,
    /// The API server says that another pod has its name; this is the UID of that pod.
    Replaced(&'a str),
}

impl<'a> TargetPod<'a> {
    /// The target with this UID, from what the cache has under its name. `is_deleted` says that its DELETED event has been
    /// seen.
    pub(crate) fn of_cache(cached: Option<&'a Pod>, uid: &str, is_deleted: bool) -> Self {
        match cached.filter(|pod| pod.uid == uid) {
            Some(pod) => Self::Present(pod),
            None if is_deleted => Self::Absent,
            None => Self::NotCached,
        }
    }

    /// The target with this UID, from what the API server has under its name.
    pub(crate) fn of_live_read(live: Option<&'a Pod>, uid: &str) -> Self {
        match live {
            Some(pod) if pod.uid == uid => Self::Present(pod),
            Some(other) => Self::Replaced(&other.uid),
            None => Self::Absent,
        }
    }
}

/// The writes and events that a step decides on; none by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestDecision {
    /// The status to write, if it is to change.
    pub status: Option<EvictionRequestStatus>,
    /// The labels to change, because the pod's differ: none removes a label.
    pub labels: BTreeMap<String, Option<String>>,
    /// When to look again, if nothing changes before.
    pub wake: Option<Timestamp>,
    /// Whether the status to write ends the request.
    pub ends: bool,
    /// Whether the request is to be deleted.
    pub delete: bool,
    /// Whether the API server is to be asked for the pod before anything is decided.
    pub confirm: bool,
    /// Warning events for the pod's owner, published once the status is written.
    pub warnings: Vec<Warning>,
}

/// The one thing that is done about a decision. What it leaves out is decided again when the watch delivers the changed
/// object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RequestAction {
    /// The request is removed.
    Remove,
    /// The status is written, and these warnings are published.
    WriteStatus(Box<EvictionRequestStatus>, Vec<Warning>),
    /// The labels are changed. The change may be one that the watch does not show, so the wake-up is kept.
    ChangeLabels(BTreeMap<String, Option<String>>, Option<Timestamp>),
    /// Nothing, until then or until something changes.
    Wait(Option<Timestamp>),
}

impl RequestDecision {
    /// What to do about it now.
    pub(crate) fn action(self) -> RequestAction {
        match self {
            Self { delete: true, .. } => RequestAction::Remove,
            Self { status: Some(status), warnings, .. } => {
                RequestAction::WriteStatus(Box::new(status), warnings)
            }
            Self { labels, wake, .. } if !labels.is_empty() => RequestAction::ChangeLabels(labels, wake),
            Self { wake, .. } => RequestAction::Wait(wake),
        }
    }
}

/// A Warning event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its reason.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}
