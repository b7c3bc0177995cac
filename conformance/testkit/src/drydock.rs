//! Drydock in a host: our API server, registered with the aggregator, and our controller manager as they would run in a
//! cluster, each with the rights of its own service account from deploy/base and nothing more.

mod flags;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::Api;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use crate::host::{TestHost, repository};
use crate::wait::{LIMIT, api_available, https_ready, server_ready, unless_ended};

const APISERVER: &str = "drydock-apiserver";
/// The controller manager's process.
pub const MANAGER: &str = "drydock-controller-manager";
/// The programs of deploy/base, which have the same names as their service accounts and roles.
pub const PROGRAMS: [&str; 2] = [APISERVER, MANAGER];
const STANDBY: &str = "drydock-controller-manager-standby";
const NAMESPACE: &str = "drydock-system";
const API_SERVICE: &str = "v1alpha1.coordination.k8s.io";

/// Where the API server keeps its objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum StorageChoice {
    /// The embedded store, in a file.
    #[default]
    Sqlite,
    /// The host's etcd, under a prefix of its own.
    Etcd,
}

/// The name of the store in a sentence.
impl fmt::Display for StorageChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StorageChoice::Sqlite => "SQLite",
            StorageChoice::Etcd => "etcd",
        })
    }
}

/// How Drydock is to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Storage of the API server.
    pub storage: StorageChoice,
    /// `--heartbeat-deadline` of the API server and the controller manager, as they read it (`90s`); their own default if absent.
    pub heartbeat_deadline: Option<String>,
    /// Whether a second controller manager stands by, and takes over within seconds of silence. On a busy machine one that
    /// is well may lose its lease, and ends: whoever asks for this starts it again.
    pub standby: bool,
    /// `-v` of the API server and the controller manager.
    pub verbosity: u8,
    /// More flags of the API server.
    pub apiserver_flags: Vec<String>,
}

/// A running Drydock. It ends with its host.
pub struct Drydock {
    /// Where it runs.
    pub host: Arc<TestHost>,
    options: Options,
    port: u16,
    /// By the names of the processes, which keep them when they are started again.
    manager_ports: Mutex<HashMap<String, u16>>,
}

impl Drydock {
    /// Starts the API server and the controller manager, and waits until the host serves our API.
    pub async fn start(host: Arc<TestHost>, options: Options) -> Result<Drydock> {
        let drydock = Self::start_without_controllers(host, options).await?;
        for name in drydock.managers() {
            drydock.start_manager_as(name).await?;
        }
        Ok(drydock)
    }

    /// Starts the API server and nothing that acts on objects, and waits until the host serves our API.
    pub async fn start_without_controllers(host: Arc<TestHost>, options: Options) -> Result<Drydock> {
        let port = host.free_port()?;
        let drydock = Drydock { host, options, port, manager_ports: Mutex::default() };
        grant(&drydock.host)?;
        let served = async {
            drydock.start_apiserver().await?;
            drydock.register().await
        };
        served.await.with_context(|| drydock.log_tail())?;
        Ok(drydock)
    }

    /// The names of the controller managers' processes.
    pub fn managers(&self) -> &'static [&'static str] {
        if self.options.standby { &[MANAGER, STANDBY] } else { &[MANAGER] }
    }

    /// The last lines of both logs, for the message of a test that failed.
    pub fn log_tail(&self) -> String {
        let said = |name| format!("--- {name} said last:\n{}\n", self.host.processes.log_tail(name));
        format!("{}{}", said(APISERVER), said(MANAGER))
    }

    /// Starts the API server, again if it was killed, with the data that it had, and waits until it is ready.
    pub async fn start_apiserver(&self) -> Result<()> {
        self.start_apiserver_with(&[]).await
    }

    /// The same with more flags, until it is started again.
    pub async fn start_apiserver_with(&self, more: &[String]) -> Result<()> {
        let flags = [&self.apiserver_flags()?, more].concat();
        self.host.processes.start(APISERVER, &program(APISERVER), &flags)?;
        crate::wait::file(&self.ca(), &self.host.processes, APISERVER, LIMIT).await?;
        server_ready(&self.direct().await?, &self.host.processes, APISERVER, LIMIT).await
    }

    /// Starts the controller manager, again if it was killed, and waits until it listens. It does not wait until the killed
    /// one's lease is over.
    pub async fn start_manager(&self) -> Result<()> {
        self.start_manager_with(&[]).await
    }

    /// The same with more flags.
    pub async fn start_manager_with(&self, more: &[String]) -> Result<()> {
        self.free_lease()?;
        let port = self.spawn_manager_with(MANAGER, more)?;
        self.listens(MANAGER, port).await
    }

    /// Takes the lease from a controller manager that was killed, if there is a lease.
    fn free_lease(&self) -> Result<()> {
        let nobody = json!({"spec": {"holderIdentity": ""}}).to_string();
        let patch = ["patch", "lease", MANAGER, "--namespace", NAMESPACE, "--type=merge", "-p", &nobody];
        match self.host.kubectl(&patch) {
            Err(error) if !format!("{error:#}").contains("NotFound") => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits until the caches of the controller manager are complete.
    pub async fn manager_is_ready(&self) -> Result<()> {
        let port = self.manager_flag("--secure-port=")?.parse()?;
        unless_ended(&self.host.processes, MANAGER, https_ready(port, "/readyz", LIMIT)).await
    }

    /// Starts one of several controller managers, and waits until it listens.
    pub async fn start_manager_as(&self, name: &str) -> Result<()> {
        let port = self.spawn_manager_with(name, &[])?;
        self.listens(name, port).await
    }

    /// Starts one of several controller managers and does not wait: for those who may kill it meanwhile, and start it again
    /// when it has ended.
    pub fn spawn_manager_as(&self, name: &str) -> Result<()> {
        self.spawn_manager_with(name, &[]).map(drop)
    }

    fn spawn_manager_with(&self, name: &str, more: &[String]) -> Result<u16> {
        let (flags, port) = self.manager_flags(name)?;
        self.host.processes.start(name, &program(MANAGER), &[&flags, more].concat())?;
        Ok(port)
    }

    /// Waits until a controller manager answers on its port, which needs neither the host nor the lease.
    async fn listens(&self, name: &str, port: u16) -> Result<()> {
        unless_ended(&self.host.processes, name, https_ready(port, "/livez", LIMIT)).await
    }

    /// Kills the API server (SIGKILL).
    pub fn kill_apiserver(&self) -> Result<bool> {
        self.host.processes.kill(APISERVER)
    }

    /// Kills the controller manager (SIGKILL).
    pub fn kill_manager(&self) -> Result<bool> {
        self.host.processes.kill(MANAGER)
    }

    /// Asks the API server to end, and returns how it did.
    pub async fn stop_apiserver(&self) -> Result<ExitStatus> {
        self.host.processes.terminate(APISERVER, LIMIT).await
    }

    /// Asks the controller manager to end, and returns how it did.
    pub async fn stop_manager(&self) -> Result<ExitStatus> {
        self.host.processes.terminate(MANAGER, LIMIT).await
    }

    /// The controller manager that holds the lease, if it is one of ours that runs.
    pub async fn leader(&self) -> Result<Option<&'static str>> {
        let leases: Api<Lease> = Api::namespaced(self.host.client().await?, NAMESPACE);
        let holder = leases.get_opt(MANAGER).await?.and_then(|lease| lease.spec?.holder_identity);
        let Some(holder) = holder.filter(|holder| !holder.is_empty()) else { return Ok(None) };
        // A process chooses its identity when it starts, and logs it.
        let logged = |name: &&&str| {
            let log = std::fs::read_to_string(self.host.log(name)).unwrap_or_default();
            log.contains(&holder) && self.host.processes.runs(name)
        };
        Ok(self.managers().iter().find(logged).copied())
    }

    /// An admin's client to our API server itself, past the aggregator.
    pub async fn direct(&self) -> Result<Client> {
        self.direct_as(Kubeconfig::read_from(self.host.admin())?).await
    }

    /// A client of our API server itself, as the user of a kubeconfig.
    pub async fn direct_as(&self, file: Kubeconfig) -> Result<Client> {
        self.direct_at(&self.url(), file).await
    }

    /// The same, by a way of the caller's own.
    pub async fn direct_at(&self, url: &str, file: Kubeconfig) -> Result<Client> {
        let file = self.leading_to(url, file);
        let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// Writes the kubeconfigs with which one of our programs reaches the host, and our API server itself.
    pub fn kubeconfigs_of(&self, program: &str) -> Result<(PathBuf, PathBuf)> {
        let host = self.kubeconfig_of(program)?;
        let direct = self.leading_to(&self.url(), Kubeconfig::read_from(&host)?);
        let path = self.host.dir.join(format!("{program}-direct.kubeconfig"));
        std::fs::write(&path, serde_json::to_vec(&direct)?)?;
        Ok((host, path))
    }

    fn leading_to(&self, url: &str, mut file: Kubeconfig) -> Kubeconfig {
        for cluster in file.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.server = Some(url.into());
            cluster.tls_server_name = Some(self.server_name());
            cluster.certificate_authority = Some(self.ca().display().to_string());
        }
        file
    }

    /// The name that the certificate of our API server carries.
    pub fn server_name(&self) -> String {
        format!("{APISERVER}.{NAMESPACE}.svc")
    }

    /// `https://127.0.0.1:PORT` of our API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// `https://127.0.0.1:PORT` of our controller manager, which chose its port when it started.
    pub fn manager_url(&self) -> Result<String> {
        Ok(format!("https://127.0.0.1:{}", self.manager_flag("--secure-port=")?))
    }

    /// The CA that signed the certificate of our controller manager.
    pub fn manager_ca(&self) -> Result<PathBuf> {
        Ok(PathBuf::from(self.manager_flag("--cert-dir=")?).join("ca.crt"))
    }

    /// Makes a Service that leads to loopback (which EndpointSlices refuse), and the APIService that names it, or gives the
    /// APIService the CA that the API server has now.
    pub async fn register(&self) -> Result<()> {
        let ca = std::fs::read(self.ca())?;
        let meta = json!({"name": APISERVER, "namespace": NAMESPACE});
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": meta,
            "spec": {"type": "ExternalName", "externalName": "localhost",
                     // Named, so that the one of deploy/ may stand beside it.
                     "ports": [{"name": "loopback", "port": self.port, "protocol": "TCP"}]},
        });
        let registration = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": API_SERVICE},
            "spec": {"group": "coordination.k8s.io", "version": "v1alpha1",
                     // Beside the host's own v1, which stays the preferred one.
                     "groupPriorityMinimum": 16500, "versionPriority": 5,
                     "service": {"name": APISERVER, "namespace": NAMESPACE, "port": self.port},
                     "caBundle": k8s_openapi::ByteString(ca)},
        });
        let path = self.host.dir.join("registration.json");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [service, registration]});
        std::fs::write(&path, list.to_string())?;
        self.host.kubectl(&["apply", "--server-side", "-f", &path.to_string_lossy()])?;
        api_available(&self.host.client().await?, API_SERVICE, LIMIT).await
    }

    /// The audit log of our API server.
    pub fn audit_log(&self) -> PathBuf {
        self.dir().join("audit.log")
    }

    /// The audit logs of the host and of our API server: the requests of our controllers for our kinds are in the second.
    pub fn audit_logs(&self) -> [PathBuf; 2] {
        [self.host.audit_log(), self.audit_log()]
    }

    fn dir(&self) -> PathBuf {
        self.host.dir.join("drydock")
    }

    /// The CA that signed the certificate of our API server.
    pub fn ca(&self) -> PathBuf {
        self.dir().join(APISERVER).join("ca.crt")
    }
}

/// Creates namespace, service accounts, roles and flow schemas, as deploy/ has them: the programs run under no other
/// rights.
pub fn grant(host: &TestHost) -> Result<()> {
    let of_base = ["namespace", "rbac-apiserver", "rbac-controller-manager", "flow-schemas"];
    apply(host, &of_base.map(|name| format!("base/{name}.yaml")))
}

/// Creates what deploy/ has for people: roles, and the policy that warns of wrong annotations.
pub fn open_to_users(host: &TestHost) -> Result<()> {
    let files =
        ["base/rbac-users.yaml", "base/interceptor-annotations.yaml", "components/monitoring/rbac.yaml"];
    apply(host, &files.map(str::to_owned))
}

/// Applies files of deploy/.
fn apply(host: &TestHost, files: &[String]) -> Result<()> {
    for file in files {
        let path = repository().join("deploy").join(file);
        host.kubectl(&["apply", "--server-side", "-f", &path.to_string_lossy()])?;
    }
    Ok(())
}

/// The path of one of our programs: in the folder that DRYDOCK_BIN names, or beside the running program, where cargo
/// puts it.
pub fn program(name: &str) -> PathBuf {
    if let Some(bin) = std::env::var_os("DRYDOCK_BIN") {
        return PathBuf::from(bin).join(name);
    }
    let mine = std::env::current_exe().unwrap_or_default();
    let dirs = mine.ancestors().skip(1).take(2);
    let found = dirs.map(|dir| dir.join(name)).find(|path| path.exists());
    found.unwrap_or_else(|| PathBuf::from(name))
}
