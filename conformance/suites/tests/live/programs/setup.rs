//! The API server and the controller manager, with the flags that they need to run in the shared host.

use std::path::PathBuf;

use anyhow::Result;
use drydock_testkit::drydock::{grant, program};
use drydock_testkit::host::{TestHost, kubeconfig};
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::program::{Program, folder};
use drydock_testkit::wait::https_ready;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::sync::OnceCell;

use crate::shared::LIMIT;

pub const APISERVER: &str = "drydock-apiserver";
pub const MANAGER: &str = "drydock-controller-manager";
pub const BOTH: [&str; 2] = [APISERVER, MANAGER];

const NAMESPACE: &str = "programs";

/// One of our programs in a folder of its own.
pub struct ProgramSetup {
    pub name: &'static str,
    pub dir: PathBuf,
    pub port: u16,
    /// The flags with which it runs.
    pub flags: Vec<String>,
}

impl ProgramSetup {
    /// Returns a program that reaches the host at an address; `test` names its folder.
    pub async fn new(host: &TestHost, test: &str, name: &'static str, url: &str) -> Result<ProgramSetup> {
        static GRANTED: OnceCell<()> = OnceCell::const_new();
        GRANTED.get_or_try_init(async || grant_leases(host).await).await?;
        let dir = folder(&host.dir, &format!("{test}-{name}"))?;
        let user = format!("system:serviceaccount:drydock-system:{name}");
        let groups = ["system:serviceaccounts", "system:serviceaccounts:drydock-system"];
        let identity = host.pki.client(&dir, "user", &user, &groups)?;
        std::fs::write(dir.join("kubeconfig"), kubeconfig(url, &host.pki.ca, &identity))?;
        let port = host.free_port()?;
        let mut flags = vec!["--kubeconfig=kubeconfig".into(), "--bind-address=127.0.0.1".into()];
        flags.extend([format!("--secure-port={port}"), "--cert-dir=certs".into()]);
        match name {
            APISERVER => flags.push("--data-dir=data".into()),
            // It does not compete for the lease of the Drydock that the other tests use, and does not do
            // that one's work.
            _ => flags.extend([
                format!("--leader-elect-resource-name={test}"),
                format!("--leader-elect-resource-namespace={NAMESPACE}"),
                "--controllers=-daemonset-eviction".into(),
            ]),
        }
        Ok(ProgramSetup { name, dir, port, flags })
    }

    /// Starts it with the flags with which it runs, and more.
    pub fn start(&self, more: &[String]) -> Result<Program> {
        Program::start(&program(self.name), &self.dir, &[&self.flags, more].concat())
    }

    /// Starts it likewise, and waits until it is ready.
    pub async fn start_ready(&self, more: &[String]) -> Result<Program> {
        let mut running = self.start(more)?;
        running.unless_ended(https_ready(self.port, "/readyz", LIMIT)).await?;
        Ok(running)
    }

    /// The admin's kubeconfig for its port, in a file.
    pub fn admin_kubeconfig(&self, host: &TestHost) -> Result<PathBuf> {
        let path = self.dir.join("admin.kubeconfig");
        std::fs::write(&path, serde_json::to_vec(&self.admin_config(host)?)?)?;
        Ok(path)
    }

    /// The admin's client to its port.
    pub async fn admin(&self, host: &TestHost) -> Result<Client> {
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(self.admin_config(host)?, &options).await?;
        Ok(Client::try_from(config)?)
    }

    fn admin_config(&self, host: &TestHost) -> Result<Kubeconfig> {
        let mut file = Kubeconfig::read_from(host.admin())?;
        for cluster in file.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.server = Some(format!("https://127.0.0.1:{}", self.port));
            cluster.certificate_authority = None;
            cluster.insecure_skip_tls_verify = Some(true);
        }
        Ok(file)
    }
}

/// The rights of deploy/, and beside them any lease in a namespace of its own: that of deploy/ is taken.
async fn grant_leases(host: &TestHost) -> Result<()> {
    grant(host)?;
    let kubectl = Kubectl::new(host).in_namespace(NAMESPACE);
    kubectl.ok(&["create", "namespace", NAMESPACE]).await?;
    kubectl.ok(&["create", "role", "leases", "--verb=*", "--resource=leases.coordination.k8s.io"]).await?;
    let account = format!("--serviceaccount=drydock-system:{MANAGER}");
    kubectl.ok(&["create", "rolebinding", "leases", "--role=leases", &account]).await.map(drop)
}
