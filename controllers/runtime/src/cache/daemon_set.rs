//! A DaemonSet: which it is, and whether it is being deleted. The host sends its metadata alone.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::cacheable::Cacheable;

/// A DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "WireDaemonSet")]
pub struct DaemonSet {
    /// `metadata.name`
    pub name: String,
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.resourceVersion`
    pub resource_version: String,
    /// Whether `metadata.deletionTimestamp` is set: its controller makes no pods any more.
    pub is_being_deleted: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireDaemonSet {
    metadata: WireMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireMeta {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<IgnoredAny>,
}

impl From<WireDaemonSet> for DaemonSet {
    fn from(WireDaemonSet { metadata: meta }: WireDaemonSet) -> Self {
        Self {
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
            is_being_deleted: meta.deletion_timestamp.is_some(),
        }
    }
}

impl Cacheable for DaemonSet {
    const GROUP: &'static str = "apps";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "DaemonSet";
    const PLURAL: &'static str = "daemonsets";
    const IS_METADATA: bool = true;

    fn name(&self) -> &str {
        &self.name
    }
    fn namespace(&self) -> &str {
        &self.namespace
    }
    fn uid(&self) -> &str {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}
