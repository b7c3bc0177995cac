//! The Watch calls that the random clients make: each method, and each condition of a filter.

use drydock_proto::status::v1alpha1::{WatchMaintenancesRequest, WatchNodesRequest};

use crate::client::Watch;

/// Returns one of each.
pub fn watches() -> Vec<Watch> {
    let maintenances = |change: fn(&mut WatchMaintenancesRequest)| {
        let mut request = WatchMaintenancesRequest::default();
        change(&mut request);
        Watch::Maintenances(request)
    };
    let nodes = |change: fn(&mut WatchNodesRequest)| {
        let mut request = WatchNodesRequest::default();
        change(&mut request);
        Watch::Nodes(request)
    };
    vec![
        Watch::evictions(|_| {}),
        Watch::evictions(|_| {}).every(5),
        Watch::evictions(|r| r.namespace = "a".into()),
        Watch::evictions(|r| r.node = "n1".into()),
        Watch::evictions(|r| r.maintenance = "m1".into()),
        Watch::evictions(|r| r.label_selector = "team=web".into()),
        Watch::evictions(|r| (r.namespace, r.only_blocked) = ("b".into(), true)),
        maintenances(|_| {}),
        maintenances(|r| r.maintenance = "m1".into()),
        maintenances(|r| (r.node, r.only_blocked) = ("n2".into(), true)),
        maintenances(|r| r.label_selector = "team=web".into()),
        nodes(|_| {}),
        nodes(|r| r.maintenance = "m2".into()),
        nodes(|r| (r.node, r.only_blocked) = ("n1".into(), true)),
    ]
}
