//! What the author of an interceptor holds during a turn, and how a turn ends.

use drydock_api::eviction_request::{Blocked, EvictionRequest, InterceptorStatus};
use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;

use crate::entry::ProgressReport;

/// The interceptor's turn in the eviction of one pod. Clones are of the same turn.
///
/// What is reported through it goes into the interceptor's entry in the request's status, at most once a second; if more
/// is reported in between, the last is written.
#[derive(Clone)]
pub struct EvictionTurn {
    client: Client,
    request: std::sync::Arc<EvictionRequest>,
    is_resumed: bool,
    progress: watch::Sender<ProgressReport>,
    accepted: watch::Receiver<InterceptorStatus>,
}

/// How an interceptor ends its turn. The next interceptor has its turn then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The work is done, or as much of it as can be. The text is for people, of at most 4,000 characters; a longer one
    /// is cut.
    Done(String),
    /// The interceptor has nothing to do for this pod. The text says why.
    Declined(String),
}

impl EvictionTurn {
    pub(crate) fn new(
        client: Client,
        request: EvictionRequest,
        is_resumed: bool,
        progress: watch::Sender<ProgressReport>,
        accepted: watch::Receiver<InterceptorStatus>,
    ) -> Self {
        Self { client, request: request.into(), is_resumed, progress, accepted }
    }

    /// A turn that nobody serves, for tests: what is reported in it is lost.
    #[cfg(feature = "test-util")]
    pub fn unserved(client: Client, request: EvictionRequest) -> Self {
        let (progress, accepted) =
            (watch::Sender::new(ProgressReport::default()), watch::Sender::new(InterceptorStatus::default()));
        Self::new(client, request, false, progress, accepted.subscribe())
    }

    /// The client that the interceptor runs with.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The request as it was when the turn was taken up.
    pub fn request(&self) -> &EvictionRequest {
        &self.request
    }

    /// Namespace of the request and of the pod.
    pub fn namespace(&self) -> &str {
        &self.request.metadata.namespace
    }

    /// Name of the pod. A StatefulSet soon makes another of the same name: compare [`Self::pod_uid`] too.
    pub fn pod_name(&self) -> &str {
        self.request.spec.target.pod.as_ref().map_or("", |pod| &pod.name)
    }

    /// UID of the pod.
    pub fn pod_uid(&self) -> &str {
        self.request.spec.target.pod.as_ref().map_or("", |pod| &pod.uid)
    }

    /// Whether the interceptor had begun this turn before, and was restarted or failed since.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// The interceptor's entry as the API server has it. The channel is closed when the turn is over.
    pub fn accepted(&self) -> watch::Receiver<InterceptorStatus> {
        self.accepted.clone()
    }

    /// Reports progress, for people: at most 4,000 characters; a longer text is cut.
    pub fn set_message(&self, message: impl Into<String>) {
        let message = message.into();
        self.progress.send_if_modified(|progress| replace(&mut progress.message, message));
    }

    /// Reports when the turn is expected to end. A time in the past is not written.
    pub fn set_expected_finish(&self, at: Option<Timestamp>) {
        self.progress.send_if_modified(|progress| replace(&mut progress.expected_finish, at));
    }

    /// Reports what keeps the interceptor from going on, or that nothing does any more. While the same thing blocks, a
    /// new message waits for the next heartbeat.
    pub fn set_blocked(&self, by: Option<Blocked>) {
        self.progress.send_if_modified(|progress| replace(&mut progress.blocked, by));
    }
}

fn replace<T: PartialEq>(old: &mut T, new: T) -> bool {
    let is_new = *old != new;
    *old = new;
    is_new
}
