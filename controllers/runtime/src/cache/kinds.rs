//! The two kinds of our own as cacheable objects.

use drydock_api::eviction_request::{self, EvictionRequest};
use drydock_api::node_maintenance::{self, NodeMaintenance};

use super::cacheable::Cacheable;

impl Cacheable for EvictionRequest {
    const GROUP: &'static str = drydock_api::GROUP;
    const VERSION: &'static str = drydock_api::VERSION;
    const KIND: &'static str = "EvictionRequest";
    const PLURAL: &'static str = eviction_request::RESOURCE;
    const NAMESPACED: bool = true;

    fn name(&self) -> &str {
        &self.metadata.name
    }
    fn namespace(&self) -> &str {
        &self.metadata.namespace
    }
    fn uid(&self) -> &str {
        &self.metadata.uid
    }
    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
}

impl Cacheable for NodeMaintenance {
    const GROUP: &'static str = drydock_api::GROUP;
    const VERSION: &'static str = drydock_api::VERSION;
    const KIND: &'static str = "NodeMaintenance";
    const PLURAL: &'static str = node_maintenance::RESOURCE;
    const NAMESPACED: bool = false;

    fn name(&self) -> &str {
        &self.metadata.name
    }
    fn namespace(&self) -> &str {
        ""
    }
    fn uid(&self) -> &str {
        &self.metadata.uid
    }
    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
}
