//! The annotation of requests that names the maintenances for which their pods are asked to leave.

use std::collections::HashMap;
use std::sync::Arc;

use drydock_api::eviction_request::maintenances::{MAX_MAINTENANCES, MaintenanceReference, encode};
use drydock_api::node_maintenance::PodType;
use drydock_runtime::Pod;

use crate::world::WorldView;

/// The annotation's value of each node and pod type for which it was needed.
pub(super) struct MaintenanceNames<'v, 'a> {
    view: &'v WorldView<'a>,
    known: HashMap<(String, PodType), Arc<str>>,
}

impl<'v, 'a> MaintenanceNames<'v, 'a> {
    pub(super) fn new(view: &'v WorldView<'a>) -> Self {
        Self { view, known: HashMap::new() }
    }

    /// Names the oldest maintenances that drain pods of this pod's type on its node.
    pub(super) fn of(&mut self, pod: &Pod) -> Arc<str> {
        let (view, pod_type) = (self.view, pod.pod_type());
        let known = self.known.entry((pod.node_name.clone(), pod_type));
        known.or_insert_with(|| value(view, &pod.node_name, pod_type).into()).clone()
    }
}

fn value(view: &WorldView<'_>, node: &str, pod_type: PodType) -> String {
    let drains = view.drains_of_type(node, pod_type).take(MAX_MAINTENANCES);
    let named = drains.map(|m| MaintenanceReference::to(m));
    encode(&named.collect::<Vec<_>>())
}
