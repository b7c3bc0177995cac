//! The server's copy of the host's nodes.

use std::collections::BTreeMap;

use drydock_serving::host::Reflector;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt};

/// Watches the host's nodes for their names and labels.
pub struct HostNodes(Reflector<Node>);

impl HostNodes {
    /// Starts the watch.
    pub fn follow(client: Client) -> Self {
        Self(Reflector::start("nodes", Api::all(client)))
    }

    /// Whether the initial list of nodes has been read.
    pub fn ready(&self) -> bool {
        self.0.ready()
    }

    /// Returns the labels of every node, by its name.
    pub fn all(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let nodes = self.0.known().state();
        nodes.iter().map(|node| (node.name_any(), node.labels().clone())).collect()
    }
}
