//! The trait of kinds that are watched and stored, and the two kinds of our own.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use drydock_api::eviction_request::{self, EvictionRequest};
use drydock_api::node_maintenance::{self, NodeMaintenance};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use kube::core::{DynamicResourceScope, Resource};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// Namespace and name of an object; the namespace of cluster-scoped objects is empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Namespace, or empty.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key of these two.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An object as a cache holds it, decoded straight from the wire into the fields that are used.
pub trait Cacheable: DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static {
    /// API group; empty for core.
    const GROUP: &'static str;
    /// API version.
    const VERSION: &'static str;
    /// Kind.
    const KIND: &'static str;
    /// Resource.
    const PLURAL: &'static str;
    /// Whether objects live in namespaces.
    const NAMESPACED: bool;

    /// `metadata.name`
    fn name(&self) -> &str;
    /// `metadata.namespace`, empty if cluster-scoped.
    fn namespace(&self) -> &str;
    /// `metadata.uid`
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion`
    fn resource_version(&self) -> &str;
    /// The node that the object is bound to, empty while it is not bound; none if the kind is not indexed by node.
    fn node(&self) -> Option<&str> {
        None
    }
    /// Key of the object.
    fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), self.name())
    }
}

/// A kind's names for kube's dynamic API.
pub fn resource<T: Cacheable>() -> ApiResource {
    let api_version =
        if T::GROUP.is_empty() { T::VERSION.to_owned() } else { format!("{}/{}", T::GROUP, T::VERSION) };
    ApiResource {
        group: T::GROUP.to_owned(),
        version: T::VERSION.to_owned(),
        api_version,
        kind: T::KIND.to_owned(),
        plural: T::PLURAL.to_owned(),
    }
}

/// A typed API over all namespaces that decodes into `T`.
pub fn api_all<T: Cacheable>(client: &Client) -> Api<KubeObject<T>> {
    Api::all_with(client.clone(), &())
}

/// A typed API that decodes into `T`: in a namespace, or cluster-wide when `namespace` is empty.
pub fn api<T: Cacheable>(client: &Client, namespace: &str) -> Api<KubeObject<T>> {
    if namespace.is_empty() {
        Api::all_with(client.clone(), &())
    } else {
        Api::namespaced_with(client.clone(), namespace, &())
    }
}

/// Carries a [`Cacheable`] through kube's generic client, which wants an `ObjectMeta` beside it.
#[derive(Clone, Debug)]
pub struct KubeObject<T> {
    meta: ObjectMeta,
    /// The object.
    pub object: T,
}

impl<'de, T: Cacheable> Deserialize<'de> for KubeObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = T::deserialize(deserializer)?;
        let meta = ObjectMeta {
            name: Some(object.name().to_owned()),
            namespace: (!object.namespace().is_empty()).then(|| object.namespace().to_owned()),
            uid: Some(object.uid().to_owned()),
            resource_version: Some(object.resource_version().to_owned()),
            ..Default::default()
        };
        Ok(Self { meta, object })
    }
}

impl<T: Cacheable> Resource for KubeObject<T> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        T::KIND.into()
    }
    fn group(_: &()) -> Cow<'_, str> {
        T::GROUP.into()
    }
    fn version(_: &()) -> Cow<'_, str> {
        T::VERSION.into()
    }
    fn plural(_: &()) -> Cow<'_, str> {
        T::PLURAL.into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

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
