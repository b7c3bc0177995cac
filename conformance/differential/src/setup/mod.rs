//! The servers: one host, the reference kinds and our two kinds beside it, and the ways to reach each.

mod clients;
mod custom;
mod servers;

use std::sync::Arc;

use anyhow::{Context, Result};
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::TestHost;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api as KubeApi, PostParams};
use kube::{Client, Resource};

use crate::target::{REFERENCE_KINDS, TargetApi, TargetKind};
use clients::Clients;

/// A way to a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRoute {
    /// The host's own.
    Theirs,
    /// Ours, at our port.
    Direct,
    /// Ours, through the aggregator of the host.
    Aggregated,
}

/// Everything that runs, and how to speak to it.
pub struct ServerSetup {
    /// The host.
    pub host: Arc<TestHost>,
    theirs: Clients,
    reference_kinds: Clients,
    drydock: Clients,
}

impl ServerSetup {
    /// Starts everything and waits until the host serves the reference kinds.
    pub async fn start() -> Result<Self> {
        let host = TestHost::start_without_controllers().await?;
        servers::allow_users(&host)?;
        let reference_kinds =
            servers::start_reference_kinds(&host).await.context("the reference kinds do not come up")?;
        let drydock = Drydock::start_without_controllers(host.clone(), Options::default()).await?;
        custom::define(&drydock).await.context("our kinds are not served as custom resources")?;
        let drydock = Clients::of_url(&host, &drydock.url(), &drydock.ca()).await?;
        Ok(Self { theirs: Clients::of_host(&host).await?, reference_kinds, drydock, host })
    }

    /// Where a kind is.
    pub fn api(&self, target: &TargetKind, route: ServerRoute) -> TargetApi {
        if route == ServerRoute::Theirs { target.theirs } else { target.ours }
    }

    /// The client for a way to a kind.
    pub fn client(&self, target: &TargetKind, route: ServerRoute, anonymous: bool) -> &Client {
        let clients = match route {
            ServerRoute::Direct if target.ours == REFERENCE_KINDS => &self.reference_kinds,
            ServerRoute::Direct => &self.drydock,
            ServerRoute::Theirs | ServerRoute::Aggregated => &self.theirs,
        };
        if anonymous { &clients.nobody } else { &clients.admin }
    }

    /// Makes a namespace and waits for nothing: our servers look at the host for one that they do not know yet.
    pub async fn make_namespace(&self, name: &str) -> Result<()> {
        let mut namespace = Namespace::default();
        namespace.meta_mut().name = Some(name.to_owned());
        let all = KubeApi::<Namespace>::all(self.theirs.admin.clone());
        all.create(&PostParams::default(), &namespace).await.map(drop).context("no namespace could be made")
    }
}
