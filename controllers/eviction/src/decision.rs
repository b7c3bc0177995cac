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
}

impl Default for Config {
    fn default() -> Self {
        Self {
            heartbeat_deadline: DEFAULT_HEARTBEAT_DEADLINE,
            retention: Some(Duration::from_secs(24 * 3600)),
            canceled_grace: Duration::from_secs(5 * 60),
            max_finished: 5_000,
            allowed: AllowedNames::default(),
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

/// A Warning event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its reason.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}
