//! The Get methods: read one entity from storage. They start no hub.

use bytes::Bytes;
use drydock_api::eviction_request::{self, EvictionRequest};
use drydock_api::node_maintenance::{self, NodeMaintenance};
use drydock_proto::status::v1alpha1::{GetEvictionResponse, GetMaintenanceResponse, GetNodeResponse};
use drydock_storage::storage::{PageOptions, ReadAt, Scope, Storage, Stored, UnlimitedMemory};
use drydock_storage::work_meter::WorkMeter;
use prost::Message;
use tonic::Status;

use crate::error::{not_found, of_storage, unavailable};
use crate::facts::Facts;
use crate::filter::Entity;
use crate::hub::state::read;
use crate::hubs::Hubs;
use crate::messages::{eviction, maintenance};

/// Returns the encoded response.
///
/// # Errors
/// NOT_FOUND if there is no such entity, UNAVAILABLE if storage cannot be read.
pub async fn get(hubs: &Hubs, entity: Entity, key: &str) -> Result<Bytes, Status> {
    match entity {
        Entity::Maintenance => get_maintenance(hubs, key).await,
        Entity::Node => get_node(hubs, key).await,
        Entity::Eviction => get_eviction(hubs, key).await,
    }
}

async fn get_maintenance(hubs: &Hubs, name: &str) -> Result<Bytes, Status> {
    let object: NodeMaintenance =
        one(hubs.stores.maintenances.as_ref(), node_maintenance::RESOURCE, name).await?;
    let message = maintenance::message(&object, hubs.drain_rate(name).await);
    Ok(GetMaintenanceResponse { maintenance: Some(message) }.encode_to_vec().into())
}

async fn get_eviction(hubs: &Hubs, key: &str) -> Result<Bytes, Status> {
    let request: EvictionRequest =
        one(hubs.stores.evictions.as_ref(), eviction_request::RESOURCE, key).await?;
    let message = eviction::message(&request, hubs.config.heartbeat_deadline);
    Ok(GetEvictionResponse { eviction: Some(message) }.encode_to_vec().into())
}

async fn get_node(hubs: &Hubs, name: &str) -> Result<Bytes, Status> {
    let maintenances = all(hubs.stores.maintenances.as_ref(), Scope::all()).await?;
    // The statuses of other nodes are not needed.
    let of_node = |mut maintenance: NodeMaintenance| {
        maintenance.status.node_statuses.retain(|node| node.node_ref.name == name);
        (!maintenance.status.node_statuses.is_empty()).then_some(maintenance)
    };
    let maintenances = decoded(maintenances, of_node).await;
    if maintenances.is_empty() {
        return Err(not_found("node", name));
    }
    let wanted = name.to_owned();
    let on_node = Scope::all().matching(&["status.podInfo.nodeName"], move |object| {
        let pod = object.0.get("status").and_then(|status| status.get("podInfo"));
        pod.and_then(|pod| pod.get("nodeName")).and_then(|node| node.as_str()) == Some(&wanted)
    });
    let mut facts = Facts::new(hubs.config.heartbeat_deadline);
    // Evictions come first: no message of the node is made for them while no maintenance has a status of the node.
    let requests = all(hubs.stores.evictions.as_ref(), on_node).await?;
    for request in decoded::<EvictionRequest>(requests, Some).await {
        let key = format!("{}/{}", request.metadata.namespace, request.metadata.name);
        facts.set_eviction(&key.into(), Some(&request));
    }
    for maintenance in maintenances {
        let key = maintenance.metadata.name.as_str().into();
        facts.set_maintenance(&key, Some(&maintenance), (hubs.config.clock)());
    }
    let node = facts.node(name).ok_or_else(|| not_found("node", name))?;
    Ok(GetNodeResponse { node: Some(node) }.encode_to_vec().into())
}

async fn one<T: serde::de::DeserializeOwned>(
    storage: &dyn Storage,
    resource: &str,
    key: &str,
) -> Result<T, Status> {
    let stored = storage.get(key, ReadAt::Latest).await.map_err(|error| of_storage(&error, resource, key))?;
    read(&stored).ok_or_else(|| unavailable("the object cannot be read"))
}

async fn all(
    storage: &dyn Storage,
    scope: Scope,
) -> Result<impl Iterator<Item = std::sync::Arc<Stored>>, Status> {
    let options = PageOptions { at: ReadAt::Latest, limit: 0, start: None };
    let page = storage.list(&scope, &options, &mut UnlimitedMemory).await;
    Ok(page.map_err(|error| of_storage(&error, "list", ""))?.items.into_iter())
}

/// Decodes the objects, without those that cannot be decoded or for which `kept` returns `None`. Yields to other tasks.
async fn decoded<T: serde::de::DeserializeOwned>(
    objects: impl Iterator<Item = std::sync::Arc<Stored>>,
    kept: impl Fn(T) -> Option<T>,
) -> Vec<T> {
    let (mut decoded, mut work) = (Vec::new(), WorkMeter::default());
    for stored in objects {
        work.worked(stored.json_len()).await;
        decoded.extend(read(&stored).and_then(&kept));
    }
    decoded
}
