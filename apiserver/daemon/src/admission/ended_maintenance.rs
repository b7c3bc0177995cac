//! The maintenance controller may request an eviction only for a maintenance that drains (KEP-4212: a maintenance that is
//! Complete evicts no more pods).
//!
//! The controller withdraws its requests when a maintenance ends. A request that was sent before, and was held up on the
//! way, would arrive after that, and evict a pod of a node that is in service again. The same holds for a node that leaves
//! the selection of a maintenance that goes on: its status shows the node before the first pod is asked to leave, and
//! no longer once the node has left.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use drydock_api::eviction_request::maintenances::{
    MAINTENANCES_ANNOTATION, MaintenanceReference, NODE_ANNOTATION, decode,
};
use drydock_api::eviction_request::pod_labels::NODE_MAINTENANCE;
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{Admission, AdmissionAttributes, AdmissionOperation};
use drydock_storage::storage::{ReadAt, Storage, StorageError};

const ENDED: &str = "none of the NodeMaintenances that ask for it is in stage Drain any more";
const LEFT: &str = "none of the NodeMaintenances that ask for it drains its node any more";

/// The admission check. It concerns the users of `--controller-users` when they add the requester of node maintenances
/// to a request: one of the maintenances in the request's annotation must be in the stage Drain, and show the node in its
/// status that the request names, if it names one.
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

    /// Returns why none of the maintenances asks for a pod on this node now; none if one does.
    async fn refusal(
        &self,
        named: &[MaintenanceReference],
        node: Option<&str>,
    ) -> Result<Option<&'static str>, ApiError> {
        let unknown = || ApiError::internal("the NodeMaintenances are not served");
        let maintenances = self.maintenances.get().ok_or_else(unknown)?;
        let mut refusal = ENDED;
        for MaintenanceReference { name, .. } in named {
            match maintenances.get(name, ReadAt::Latest).await {
                Ok(maintenance) => {
                    let maintenance = maintenance.object();
                    if stage(&maintenance) == Some("Drain") {
                        if node.is_none_or(|node| shows(&maintenance, node)) {
                            return Ok(None);
                        }
                        refusal = LEFT;
                    }
                }
                Err(StorageError::NotFound) => {}
                Err(error) => return Err(ApiError::internal(error)),
            }
        }
        Ok(Some(refusal))
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
        match self.refusal(&named(new), annotation(new, NODE_ANNOTATION)).await? {
            None => Ok(()),
            Some(why) => Err(attributes.forbidden_object(why)),
        }
    }
}

/// Whether the status of a maintenance has an entry for a node.
fn shows(maintenance: &Object, node: &str) -> bool {
    let nodes = maintenance.0.get("status").and_then(|status| status.get("nodeStatuses")?.as_array());
    nodes.is_some_and(|all| all.iter().any(|entry| entry["nodeRef"]["name"] == node))
}

fn stage(maintenance: &Object) -> Option<&str> {
    maintenance.0.get("spec")?.get("stage")?.as_str()
}

fn has_requester(request: &Object) -> bool {
    let requesters = request.0.get("spec").and_then(|spec| spec.get("requesters")?.as_array());
    requesters.is_some_and(|all| all.iter().any(|requester| requester["name"] == NODE_MAINTENANCE))
}

fn named(request: &Object) -> Vec<MaintenanceReference> {
    annotation(request, MAINTENANCES_ANNOTATION).map(decode).unwrap_or_default()
}

fn annotation<'o>(request: &'o Object, key: &str) -> Option<&'o str> {
    request.meta()?.get("annotations")?.get(key)?.as_str()
}
