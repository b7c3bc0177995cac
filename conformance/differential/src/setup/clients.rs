//! Clients of one server.

use std::path::Path;

use anyhow::Result;
use drydock_testkit::host::TestHost;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Clients of one server.
pub struct Clients {
    /// The client that shows the certificate of an admin.
    pub admin: Client,
    /// The client that shows no certificate.
    pub nobody: Client,
}

impl Clients {
    /// Creates the clients of the host.
    pub async fn of_host(host: &TestHost) -> Result<Self> {
        Self::of(&Kubeconfig::read_from(host.admin())?).await
    }

    /// Creates the clients of a server of ours on loopback (`https://127.0.0.1:PORT`).
    pub async fn of_url(host: &TestHost, url: &str, ca: &Path) -> Result<Self> {
        let mut file = Kubeconfig::read_from(host.admin())?;
        for cluster in file.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.server = Some(url.to_owned());
            cluster.certificate_authority = Some(ca.display().to_string());
        }
        Self::of(&file).await
    }

    async fn of(file: &Kubeconfig) -> Result<Self> {
        let mut anonymous = file.clone();
        anonymous.auth_infos.iter_mut().for_each(|user| user.auth_info = Some(Default::default()));
        Ok(Self { admin: client(file.clone()).await?, nobody: client(anonymous).await? })
    }
}

async fn client(file: Kubeconfig) -> Result<Client> {
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(file, &options).await?;
    // A watch may be silent for long.
    config.read_timeout = None;
    // A refusal is an answer too.
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}
