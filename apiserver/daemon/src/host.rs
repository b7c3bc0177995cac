//! What the server knows of the host's nodes.

use std::collections::BTreeMap;

use drydock_server::host::Reflector;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt};

/// The host's nodes, followed: names and labels.
pub struct HostNodes(Reflector<Node>);

impl HostNodes {
    /// Starts following.
    pub fn follow(client: Client) -> Self {
        Self(Reflector::start("nodes", Api::all(client)))
    }

    /// Whether the nodes are known.
    pub fn ready(&self) -> bool {
        self.0.ready()
    }

    /// Name and labels of every node, by name.
    pub fn all(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let nodes = self.0.known().state();
        nodes.iter().map(|node| (node.name_any(), node.labels().clone())).collect()
    }
}
