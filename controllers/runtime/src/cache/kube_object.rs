//! Stored kinds as kube's generic client takes them.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use kube::core::{DynamicResourceScope, Resource};
use kube::{Api, Client};
use serde::{Deserialize, Deserializer};

use super::cacheable::Cacheable;

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
        let mut object = T::deserialize(deserializer)?;
        object.trim();
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
