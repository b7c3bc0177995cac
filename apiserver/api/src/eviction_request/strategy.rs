//! EvictionRequest's strategy.

use std::time::Duration;

use drydock_machinery::Object;
use drydock_machinery::field::ErrorList;
use drydock_machinery::kind::{Column, Names, Now, Quota};
use drydock_machinery::strategy::{Strategy, TypedKind};
use serde_json::Value;

use super::interceptors::AllowedNames;
use super::limits::{self, MAX_BYTES_WITHOUT_STATUS};
use super::status_validation::StatusUpdate;
use super::types::EvictionRequest;
use super::{columns, requester_users, validation};

/// Names of the kind.
pub const NAMES: Names = Names {
    group: crate::GROUP,
    version: crate::VERSION,
    kind: "EvictionRequest",
    plural: super::RESOURCE,
    singular: "evictionrequest",
    short_names: &["evreq"],
    categories: &[],
    namespaced: true,
};

/// The kind, for the server.
pub type EvictionRequestKind = TypedKind<EvictionRequestStrategy>;

/// The strategy, with the settings that the rules on the status depend on.
#[derive(Debug)]
pub struct EvictionRequestStrategy {
    heartbeat_deadline: Duration,
    allowed: AllowedNames,
}

impl EvictionRequestStrategy {
    /// Creates the strategy. An interceptor that is silent for `heartbeat_deadline` loses its turn.
    pub fn new(heartbeat_deadline: Duration) -> Self {
        Self { heartbeat_deadline, allowed: AllowedNames::default() }
    }

    /// Sets the names under k8s.io that interceptors may have.
    #[must_use]
    pub fn with_allowed_names(mut self, allowed: AllowedNames) -> Self {
        self.allowed = allowed;
        self
    }
}

impl Strategy for EvictionRequestStrategy {
    type Object = EvictionRequest;
    const STATUS_DEPENDS_ON_SPEC: bool = false;

    fn names(&self) -> &Names {
        &NAMES
    }

    fn record_user(&self, new: &mut Object, old: Option<&Object>, username: &str) {
        requester_users::record(new, old, username);
    }

    fn recorded_fields(&self) -> &[&'static str] {
        &["spec.requesterUsers"]
    }

    fn validate(&self, new: &EvictionRequest, _now: Now) -> ErrorList {
        validation::validate_create(new)
    }

    fn validate_update(&self, new: &EvictionRequest, old: &EvictionRequest, _now: Now) -> ErrorList {
        validation::validate_update(new, old)
    }

    fn validate_status_update(&self, new: &EvictionRequest, old: &EvictionRequest, now: Now) -> ErrorList {
        let (heartbeat_deadline, allowed) = (self.heartbeat_deadline, &self.allowed);
        StatusUpdate { new, old, now, heartbeat_deadline, allowed }.validate()
    }

    fn allows_generate_name(&self) -> bool {
        false
    }

    fn max_bytes_without_status(&self) -> Option<usize> {
        Some(MAX_BYTES_WITHOUT_STATUS)
    }

    fn quota(&self) -> Option<Quota> {
        Some(limits::QUOTA)
    }

    fn is_needed_status(&self, new: &Object, old: &Object) -> bool {
        limits::is_report(new, old)
    }

    fn max_bytes_of_status_managers(&self) -> Option<usize> {
        Some(limits::MAX_STATUS_MANAGER_BYTES)
    }

    fn selectable_fields(&self) -> &[&'static str] {
        &["spec.target.pod.name"]
    }

    fn columns(&self) -> &[Column] {
        columns::COLUMNS
    }

    fn cells(&self, request: &EvictionRequest, now: Now) -> Option<Vec<Value>> {
        Some(columns::cells(request, now, self.heartbeat_deadline))
    }
}
