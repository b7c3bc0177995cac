//! The parts of an eviction that its node's message counts.

use std::sync::Arc;
use std::time::Duration;

use drydock_api::eviction_request::EvictionRequest;
use drydock_proto::status::v1alpha1::EvictionState;
use jiff::Timestamp;

use super::State;
use super::maintenances::labels;
use crate::filter::Attributes;
use crate::messages::eviction::{expected_finish_time, message, state_of};
use crate::messages::fields;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownEviction {
    /// Empty while the node is not known.
    pub(super) node: Arc<str>,
    pub(super) state: EvictionState,
    pub(super) expected_finish_time: Option<Timestamp>,
}

impl KnownEviction {
    pub(super) fn new(request: &EvictionRequest) -> Self {
        Self {
            node: request.status.pod_info.as_ref().map_or("", |pod| pod.node_name.as_str()).into(),
            state: state_of(request),
            expected_finish_time: expected_finish_time(request),
        }
    }
}

/// Returns the eviction as subscribers see it.
pub(super) fn state(request: &EvictionRequest, heartbeat_deadline: Duration) -> State {
    let message = message(request, heartbeat_deadline);
    let attributes = Attributes {
        nodes: Some(message.node.clone()).filter(|node| !node.is_empty()).into_iter().collect(),
        maintenances: message.maintenances.iter().map(|maintenance| maintenance.name.clone()).collect(),
        labels: labels(&request.metadata.labels),
        is_blocked: message.state() == EvictionState::Blocked,
    };
    State { attributes, event: fields::updated(&message) }
}
