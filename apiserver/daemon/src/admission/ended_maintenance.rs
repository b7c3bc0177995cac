//! The maintenance controller may request an eviction only for a maintenance that drains (KEP-4212: a maintenance that is
//! Complete evicts no more pods).
//!
//! The controller withdraws its requests when a maintenance ends. A request that was sent before, and was held up on the
//! way, would arrive after that, and evict a pod of a node that is in service again.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use drydock_api::eviction_request::maintenances::{MAINTENANCES_ANNOTATION, MaintenanceReference, decode};
use drydock_api::eviction_request::pod_labels::NODE_MAINTENANCE;
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{Admission, AdmissionAttributes, AdmissionOperation};
use drydock_storage::storage::{ReadAt, Storage, StorageError};

/// The admission check. It concerns the users of `--controller-users` when they add the requester of node maintenances
/// to a request: one of the maintenances in the request's annotation must be in the stage Drain.
pub struct EndedMaintenance {
    controller_users: HashSet<String>,
    maintenances: OnceLock<Arc<dyn Storage>>,
}

impl EndedMaintenance {
    /// Creates the check, which reads no maintenances yet: it then refuses what it concerns.
    pub fn new(controller_users: impl IntoIterator<Item = String>) -> Self {
        Self { controller_users: controller_users.into_iter().collect(), maintenances: OnceLock::new() }
    }

    /// Reads the maintenances from this storage. Only the first call has an effect.
    pub fn read_from(&self, maintenances: Arc<dyn Storage>) {
        let _ = self.maintenances.set(maintenances);
    }

    /// Whether one of the maintenances is in the stage Drain now.
    async fn drains(&self, named: &[MaintenanceReference]) -> Result<bool, ApiError> {
        let unknown = || ApiError::internal("the NodeMaintenances are not served");
        let maintenances = self.maintenances.get().ok_or_else(unknown)?;
        for MaintenanceReference { name, .. } in named {
            match maintenances.get(name, ReadAt::Latest).await {
                Ok(maintenance) if stage(&maintenance.object()) == Some("Drain") => return Ok(true),
                Ok(_) | Err(StorageError::NotFound) => {}
                Err(error) => return Err(ApiError::internal(error)),
            }
        }
        Ok(false)
    }
}

#[async_trait]
impl Admission for EndedMaintenance {
    async fn admit(&self, attributes: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        let is_write =
            matches!(attributes.operation, AdmissionOperation::Create | AdmissionOperation::Update);
        let is_concerned = is_write
            && attributes.subresource.is_empty()
            && self.controller_users.contains(&attributes.user.name)
            && !attributes.old.is_some_and(has_requester);
        let Some(new) = attributes.new.filter(|new| is_concerned && has_requester(new)) else {
            return Ok(());
        };
        if self.drains(&named(new)).await? {
            return Ok(());
        }
        Err(attributes
            .forbidden_object("none of the NodeMaintenances that ask for it is in stage Drain any more"))
    }
}

fn stage(maintenance: &Object) -> Option<&str> {
    maintenance.0.get("spec")?.get("stage")?.as_str()
}

fn has_requester(request: &Object) -> bool {
    let requesters = request.0.get("spec").and_then(|spec| spec.get("requesters")?.as_array());
    requesters.is_some_and(|all| all.iter().any(|requester| requester["name"] == NODE_MAINTENANCE))
}

fn named(request: &Object) -> Vec<MaintenanceReference> {
    let annotations = request.meta().and_then(|meta| meta.get("annotations"));
    let value = annotations.and_then(|all| all.get(MAINTENANCES_ANNOTATION)?.as_str());
    value.map(decode).unwrap_or_default()
}
