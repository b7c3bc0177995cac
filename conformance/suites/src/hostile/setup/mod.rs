//! Where attacks happen: a host, Drydock in it with the rights of its service accounts, and tenants.

pub mod cluster;
mod gauges;
mod tenant;

pub use cluster::Pods;
pub use gauges::MemoryGauge;
pub use tenant::{Account, Tenant};

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use drydock_testkit::drydock::{Drydock, Options, StorageChoice, program};
use drydock_testkit::host::{TestHost, repository};
use drydock_testkit::program::{Program, flag};
use serde_json::Value;

use crate::client::{FlowWindows, ServerEndpoint, UserConnection, UserRequest};

/// Our API server's process.
const APISERVER: &str = "drydock-apiserver";
const MANAGER: &str = "drydock-controller-manager";
const SURGE: &str = "drydock-surge-interceptor";
/// The name in its certificate.
const NAME: &str = "drydock-apiserver.drydock-system.svc";
/// The address of the kubelet and of all clients that do no harm.
pub const USUAL_ADDRESS: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Flags with which our API server runs, so that few connections reach its bounds.
const LOWERED: [(&str, &str); 1] = [("--max-connections-per-address", "64")];

/// Bytes that a small store takes before half of its quota is used.
const SMALL_STORE: u64 = 8 << 20;

/// A host with Drydock in it.
pub struct AttackSetup {
    drydock: Drydock,
    /// Our API server, for callers with a token or without credentials.
    pub direct: ServerEndpoint,
    /// The same for a user of the group system:masters.
    pub system_masters: ServerEndpoint,
    /// The host's API server, and so ours behind its aggregator.
    pub host: ServerEndpoint,
    admin: ServerEndpoint,
}

impl AttackSetup {
    /// Starts everything and waits until it serves.
    pub async fn start(storage: StorageChoice) -> Result<AttackSetup> {
        let host = TestHost::start().await?;
        let apiserver_flags = lowered()?;
        // Longer than any run: the interceptors of patient pods keep their turns.
        let heartbeat_deadline = Some("240h".to_owned());
        let options = Options { storage, apiserver_flags, heartbeat_deadline, ..Options::default() };
        AttackSetup::of(Drydock::start(host, options).await?)
    }

    fn of(drydock: Drydock) -> Result<AttackSetup> {
        let host: &Arc<TestHost> = &drydock.host;
        let admin = host.pki.client(&host.dir.join("pki"), "hostile-admin", "admin", &["system:masters"])?;
        let (url, ca) = (drydock.url(), drydock.ca());
        let direct = ServerEndpoint::new(&url, NAME, &ca, None)?;
        let system_masters = ServerEndpoint::new(&url, NAME, &ca, Some(&admin))?;
        let (url, ca) = (host.url.clone(), host.pki.ca.clone());
        let plain = ServerEndpoint::new(&url, "127.0.0.1", &ca, None)?;
        let admin = ServerEndpoint::new(&url, "127.0.0.1", &ca, Some(&admin))?;
        Ok(AttackSetup { direct, system_masters, host: plain, admin, drydock })
    }

    /// Opens an admin's connection to the host, and through its aggregator to us.
    pub async fn admin(&self) -> Result<UserConnection> {
        UserConnection::open(&self.admin, USUAL_ADDRESS, None, FlowWindows::USUAL).await
    }

    /// Sends a request of the admin that has to succeed.
    pub async fn done(&self, ask: &UserRequest) -> Result<Value> {
        self.admin().await?.done(ask).await
    }

    /// Our API server's process, if it runs.
    pub fn pid(&self) -> Option<u32> {
        let processes = &self.drydock.host.processes;
        processes.pid(APISERVER).filter(|_| processes.runs(APISERVER))
    }

    /// Our controller manager's process.
    pub fn manager_pid(&self) -> Result<u32> {
        let processes = &self.drydock.host.processes;
        let running = processes.pid(MANAGER).filter(|_| processes.runs(MANAGER));
        running.context("our controller manager does not run")
    }

    /// Kills our controller manager, starts it anew, and waits until its caches are complete.
    pub async fn restart_manager(&self) -> Result<()> {
        self.drydock.kill_manager()?;
        self.drydock.start_manager().await?;
        self.drydock.manager_is_ready().await
    }

    /// Starts our surge interceptor with the rights of its service account; it ends when the value is dropped.
    pub async fn surge_interceptor(&self) -> Result<Program> {
        let lease = format!("/apis/coordination.k8s.io/v1/namespaces/drydock-system/leases/{SURGE}");
        // The one that was killed may hold it.
        self.admin().await?.ask_again(&UserRequest::delete(lease)).await?;
        let host = &self.drydock.host;
        let rights = repository().join("deploy/components/surge/rbac.yaml");
        host.kubectl(&["apply", "--server-side", "-f", &rights.to_string_lossy()])?;
        let user = format!("system:serviceaccount:drydock-system:{SURGE}");
        let groups = ["system:serviceaccounts", "system:serviceaccounts:drydock-system"];
        let mut flags =
            vec![flag("kubeconfig", &host.kubeconfig(&user, &groups)?), "--secure-port=0".to_owned()];
        // No machine is so busy that the lease is lost.
        let lease = ["lease-duration=10m", "renew-deadline=9m", "retry-period=2s"];
        flags.extend(lease.map(|flag| format!("--leader-elect-{flag}")));
        Program::start(&program(SURGE), &host.dir, &flags)
    }

    /// Our controller manager, for system:masters, or for callers with a token or without credentials.
    pub fn manager(&self, is_system_masters: bool) -> Result<ServerEndpoint> {
        let host = &self.drydock.host;
        let admin =
            host.pki.client(&host.dir.join("pki"), "hostile-manager", "admin", &["system:masters"])?;
        let (url, ca) = (self.drydock.manager_url()?, self.drydock.manager_ca()?);
        ServerEndpoint::new(&url, "localhost", &ca, is_system_masters.then_some(&admin))
    }

    /// Kills our API server and starts it with its data.
    pub async fn restart(&self) -> Result<()> {
        self.drydock.kill_apiserver()?;
        self.drydock.start_apiserver().await?;
        self.is_served_by_host().await
    }

    /// Restarts it with an embedded store that is short of space after [`SMALL_STORE`] more; etcd has a quota of its own.
    pub async fn restart_with_small_store(&self) -> Result<()> {
        self.drydock.kill_apiserver()?;
        let used = self.stored();
        self.drydock
            .start_apiserver_with(&[format!("--quota-backend-bytes={}", 2 * (used + SMALL_STORE))])
            .await?;
        self.is_served_by_host().await
    }

    /// Waits until the aggregator, which may have found us away, passes requests to us again.
    async fn is_served_by_host(&self) -> Result<()> {
        let list = UserRequest::get(format!("/apis/{}/nodemaintenances?limit=1", drydock_api::API_VERSION));
        self.done(&list).await.map(drop)
    }

    /// The last lines of the logs.
    pub fn log_tail(&self) -> String {
        self.drydock.log_tail()
    }

    /// The folder of the host's logs and data.
    pub fn folder(&self) -> String {
        self.drydock.host.dir.display().to_string()
    }
}

/// The flags of [`LOWERED`] that our API server has.
fn lowered() -> Result<Vec<String>> {
    let help =
        Command::new(program(APISERVER)).arg("--help").output().context("our API server does not start")?;
    ensure!(help.status.success(), "our API server does not print its help");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let has = |flag: &str| help.split_whitespace().any(|word| word == flag);
    Ok(LOWERED.iter().filter(|(flag, _)| has(flag)).map(|(flag, value)| format!("{flag}={value}")).collect())
}
