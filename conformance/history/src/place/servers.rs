//! Two real API servers on one cluster of etcd, beside a host that authenticates and authorizes their
//! callers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use drydock_testkit::drydock::{grant, program};
use drydock_testkit::host::TestHost;
use drydock_testkit::wait::{LIMIT, file, server_ready};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// The servers. They end with their host.
pub struct Servers {
    host: Arc<TestHost>,
    etcd: Vec<String>,
    prefix: String,
    ports: Vec<u16>,
    clients: Vec<Client>,
    serving: Vec<AtomicBool>,
}

impl Servers {
    /// Starts `count` of them.
    pub async fn start(etcd: Vec<String>, prefix: &str, count: usize) -> Result<Arc<Self>> {
        let host = TestHost::start_without_controllers().await?;
        grant(&host)?;
        let ports = (0..count).map(|_| host.free_port()).collect::<Result<_>>()?;
        let serving = (0..count).map(|_| AtomicBool::default()).collect();
        let mut servers = Self { host, etcd, prefix: prefix.to_owned(), ports, clients: Vec::new(), serving };
        for which in 0..count {
            servers.run(which)?;
            file(&servers.ca(which), &servers.host.processes, &name(which), LIMIT).await?;
            let client = servers.connect(which).await?;
            servers.clients.push(client);
            servers.ready(which).await?;
        }
        Ok(Arc::new(servers))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ports.len()
    }

    /// An admin's client of one.
    pub fn client(&self, which: usize) -> &Client {
        &self.clients[which % self.clients.len()]
    }

    /// Whether one serves: it does not from the moment at which it is killed until it is ready again.
    pub fn serves(&self, which: usize) -> bool {
        self.serving[which % self.serving.len()].load(Ordering::SeqCst)
    }

    /// Kills one (SIGKILL), and starts it again.
    pub async fn restart(&self, which: usize) -> Result<()> {
        self.serving[which].store(false, Ordering::SeqCst);
        self.host.processes.kill(&name(which))?;
        self.run(which)?;
        self.ready(which).await
    }

    /// Waits until one serves.
    pub async fn ready(&self, which: usize) -> Result<()> {
        server_ready(self.client(which), &self.host.processes, &name(which), LIMIT).await?;
        self.serving[which].store(true, Ordering::SeqCst);
        Ok(())
    }

    fn run(&self, which: usize) -> Result<()> {
        let user = "system:serviceaccount:drydock-system:drydock-apiserver";
        let groups = ["system:serviceaccounts", "system:serviceaccounts:drydock-system"];
        let flags = [
            format!("--kubeconfig={}", self.host.kubeconfig(user, &groups)?.display()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports[which]),
            format!("--cert-dir={}", self.host.dir.join(name(which)).display()),
            format!("--etcd-servers={}", self.etcd.join(",")),
            format!("--etcd-prefix={}", self.prefix),
        ];
        self.host.processes.start(&name(which), &program("drydock-apiserver"), &flags)
    }

    fn ca(&self, which: usize) -> PathBuf {
        self.host.dir.join(name(which)).join("ca.crt")
    }

    async fn connect(&self, which: usize) -> Result<Client> {
        let mut file = Kubeconfig::read_from(self.host.admin())?;
        for cluster in file.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.server = Some(format!("https://127.0.0.1:{}", self.ports[which]));
            cluster.tls_server_name = Some("drydock-apiserver.drydock-system.svc".to_owned());
            cluster.certificate_authority = Some(self.ca(which).display().to_string());
        }
        let options = KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(file, &options).await?;
        config.read_timeout = None;
        // A request that kube's client repeats by itself would count as one request, and could find its own
        // effect.
        config.default_retry = false;
        Client::try_from(config).context("no client")
    }
}

fn name(which: usize) -> String {
    format!("drydock-apiserver-{which}")
}
