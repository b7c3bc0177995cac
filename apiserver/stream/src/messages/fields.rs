//! Fields of the responses of the three Watch methods, encoded once for all subscribers. The field numbers of the three
//! are equal.

use bytes::{Bytes, BytesMut};
use drydock_proto::status::v1alpha1::{EvictionKey, MaintenanceKey, NodeKey};
use prost::Message;
use prost::encoding::message::encode;

use crate::filter::Entity;

const UPDATED: u32 = 2;
const REMOVED: u32 = 3;
/// The empty message `snapshot_started`.
pub const SNAPSHOT_STARTED: Bytes = Bytes::from_static(&[4 << 3 | 2, 0]);
/// The empty message `snapshot_complete`.
pub const SNAPSHOT_COMPLETE: Bytes = Bytes::from_static(&[5 << 3 | 2, 0]);
/// The empty message `heartbeat`.
pub const HEARTBEAT: Bytes = Bytes::from_static(&[6 << 3 | 2, 0]);
/// Tag of the field `resume_token`.
pub const RESUME_TOKEN: u8 = 1 << 3 | 2;

/// Encodes the field `updated`.
pub fn updated(message: &impl Message) -> Bytes {
    field(UPDATED, message)
}

/// Encodes the field `removed`.
pub fn removed(entity: Entity, key: &str) -> Bytes {
    match entity {
        Entity::Maintenance => field(REMOVED, &MaintenanceKey { name: key.to_owned() }),
        Entity::Node => field(REMOVED, &NodeKey { name: key.to_owned() }),
        Entity::Eviction => {
            let (namespace, name) = key.split_once('/').unwrap_or_default();
            field(REMOVED, &EvictionKey { namespace: namespace.to_owned(), name: name.to_owned() })
        }
    }
}

fn field(number: u32, message: &impl Message) -> Bytes {
    let mut out = BytesMut::with_capacity(message.encoded_len() + 8);
    encode(number, message, &mut out);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use drydock_proto::status::v1alpha1::watch_evictions_response::Event as OfEvictions;
    use drydock_proto::status::v1alpha1::watch_maintenances_response::Event as OfMaintenances;
    use drydock_proto::status::v1alpha1::watch_nodes_response::Event as OfNodes;
    use drydock_proto::status::v1alpha1::{
        Eviction, Maintenance, Node, WatchEvictionsResponse, WatchMaintenancesResponse, WatchNodesResponse,
    };

    use super::*;

    fn of_evictions(bytes: Bytes) -> OfEvictions {
        WatchEvictionsResponse::decode(bytes).unwrap().event.unwrap()
    }

    #[test]
    fn the_responses_of_all_methods_read_the_fields_alike() {
        for (bytes, read) in [
            (SNAPSHOT_STARTED, "SnapshotStarted(SnapshotStarted)"),
            (SNAPSHOT_COMPLETE, "SnapshotComplete(SnapshotComplete)"),
            (HEARTBEAT, "Heartbeat(Heartbeat)"),
        ] {
            assert_eq!(format!("{:?}", of_evictions(bytes.clone())), read);
            let response = WatchMaintenancesResponse::decode(bytes.clone()).unwrap();
            assert_eq!(format!("{:?}", response.event.unwrap()), read);
            assert_eq!(format!("{:?}", WatchNodesResponse::decode(bytes).unwrap().event.unwrap()), read);
        }
    }

    #[test]
    fn what_was_updated_or_removed_is_read_back() {
        let eviction = Eviction { namespace: "a".into(), name: "b".into(), ..Default::default() };
        assert_eq!(of_evictions(updated(&eviction)), OfEvictions::Updated(eviction));
        let key = EvictionKey { namespace: "a".into(), name: "b".into() };
        assert_eq!(of_evictions(removed(Entity::Eviction, "a/b")), OfEvictions::Removed(key));
        let maintenance = Maintenance { name: "m".into(), ..Default::default() };
        let read = WatchMaintenancesResponse::decode(updated(&maintenance)).unwrap();
        assert_eq!(read.event, Some(OfMaintenances::Updated(maintenance)));
        let read = WatchNodesResponse::decode(removed(Entity::Node, "n")).unwrap();
        assert_eq!(read.event, Some(OfNodes::Removed(NodeKey { name: "n".into() })));
        let read =
            WatchNodesResponse::decode(updated(&Node { name: "n".into(), ..Default::default() })).unwrap();
        assert!(matches!(read.event, Some(OfNodes::Updated(node)) if node.name == "n"));
    }
}
