//! EvictionRequest's implementation of the server's `Kind`.

use std::time::Duration;

use drydock_machinery::Object;
use drydock_machinery::field::ErrorList;
use drydock_machinery::kind::{Column, Kind, Names, Now, Quota, reset_status};
use drydock_machinery::schema::{ApiType, Schema};
use serde_json::Value;

use super::columns;
use super::interceptors::AllowedNames;
use super::limits::{self, MAX_BYTES_WITHOUT_STATUS};
use super::status_validation::StatusUpdate;
use super::types::EvictionRequest;
use super::validation;
use crate::decode::{copy_field, decode, decode_status};

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

/// The kind, with the settings that its status rules depend on.
#[derive(Debug)]
pub struct EvictionRequestKind {
    heartbeat_deadline: Duration,
    allowed: AllowedNames,
    schema: Schema,
}

impl EvictionRequestKind {
    /// Creates the kind. An interceptor that is silent for `heartbeat_deadline` loses its turn.
    pub fn new(heartbeat_deadline: Duration) -> Self {
        Self { heartbeat_deadline, allowed: AllowedNames::default(), schema: EvictionRequest::schema() }
    }

    /// Sets the names under k8s.io that interceptors may have.
    #[must_use]
    pub fn with_allowed_names(mut self, allowed: AllowedNames) -> Self {
        self.allowed = allowed;
        self
    }
}

impl Kind for EvictionRequestKind {
    fn names(&self) -> &Names {
        &NAMES
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn default(&self, _object: &mut Object) {}

    fn prepare_for_create(&self, object: &mut Object) {
        reset_status(object);
    }

    fn validate_create(&self, object: &Object, _now: Now) -> ErrorList {
        decode::<EvictionRequest>(object).map_or_else(|e| e, |new| validation::validate_create(&new))
    }

    fn prepare_for_update(&self, new: &mut Object, old: &Object) {
        copy_field(new, old, "status");
    }

    fn validate_update(&self, new: &Object, old: &Object, _now: Now) -> ErrorList {
        decode_both(new, old).map_or_else(|e| e, |(new, old)| validation::validate_update(&new, &old))
    }

    fn prepare_for_status_update(&self, new: &mut Object, old: &Object) {
        copy_field(new, old, "spec");
    }

    fn validate_status_update(&self, new: &Object, old: &Object, now: Now) -> ErrorList {
        let (new, old) = match (decode_status(new), decode_status(old)) {
            (Ok(new), Ok(old)) => (new, old),
            (Err(errors), _) | (_, Err(errors)) => return errors,
        };
        let (heartbeat_deadline, allowed) = (self.heartbeat_deadline, &self.allowed);
        StatusUpdate { new: &new, old: &old, now, heartbeat_deadline, allowed }.validate()
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

    fn selectable_fields(&self) -> &[&'static str] {
        &["spec.target.pod.name"]
    }

    fn columns(&self) -> &[Column] {
        columns::COLUMNS
    }

    fn cells(&self, object: &Object, now: Now) -> Vec<Value> {
        columns::cells(&decode(object).unwrap_or_default(), now, self.heartbeat_deadline)
    }
}

fn decode_both(new: &Object, old: &Object) -> Result<(EvictionRequest, EvictionRequest), ErrorList> {
    Ok((decode(new)?, decode(old)?))
}
