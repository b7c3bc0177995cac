//! The host: one control plane on loopback, on free ports, in one temporary folder.

pub mod audit;
mod config;
mod pki;
mod ports;
mod process;
pub mod programs;

pub use config::kubeconfig;
pub use pki::{CertificateFiles, Pki};
pub use ports::{OwnPorts, free_ports};
pub use process::{Process, Processes};
pub use programs::{OnStart, StartPhase};

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// A running control plane. Dropping it stops every process that it started.
pub struct TestHost {
    /// The folder of its certificates, data and logs.
    pub dir: PathBuf,
    /// The folder of etcd, kube-apiserver, kubectl and the others.
    pub bin: PathBuf,
    /// The CAs and keys that sign its certificates and tokens.
    pub pki: Pki,
    /// `https://127.0.0.1:PORT` of the kube-apiserver.
    pub url: String,
    /// `http://127.0.0.1:PORT` of the etcd.
    pub etcd: String,
    /// Its processes, and those of Drydock when it is started.
    pub processes: Processes,
    audit_log: PathBuf,
    /// Whether the audit log has all requests of our programs.
    audits_programs: bool,
    port: u16,
    /// Dropped after the processes have ended.
    ports: Mutex<OwnPorts>,
}

impl TestHost {
    /// Starts a host and waits until it serves.
    pub async fn start() -> Result<Arc<TestHost>> {
        TestHost::start_with(false, &|_, _| {}).await
    }

    /// Starts a host, reports the start of each of its programs, and waits until it serves.
    pub async fn start_reporting(on_start: OnStart<'_>) -> Result<Arc<TestHost>> {
        TestHost::start_with(false, on_start).await
    }

    /// Starts a host whose audit log has all requests of our programs, and waits until it serves.
    pub async fn start_auditing_programs() -> Result<Arc<TestHost>> {
        TestHost::start_with(true, &|_, _| {}).await
    }

    async fn start_with(audits_programs: bool, on_start: OnStart<'_>) -> Result<Arc<TestHost>> {
        let ports = OwnPorts::take(6)?;
        let mut host = TestHost::lay_out(ports[2], format!("http://127.0.0.1:{}", ports[0]))?;
        host.audits_programs |= audits_programs;
        let of_programs = ports.to_vec();
        host.ports = Mutex::new(ports);
        programs::start_all(&host, &of_programs, on_start).await?;
        Ok(Arc::new(host))
    }

    /// Starts an etcd and a kube-apiserver, but no controllers: what a client writes stays as it is.
    pub async fn start_without_controllers() -> Result<Arc<TestHost>> {
        let ports = OwnPorts::take(3)?;
        let of_programs = [ports[0], ports[1], ports[2]];
        let mut host = TestHost::lay_out(ports[2], format!("http://127.0.0.1:{}", ports[0]))?;
        host.ports = Mutex::new(ports);
        programs::start_api(&host, of_programs, &|_, _| {}).await?;
        Ok(Arc::new(host))
    }

    /// Creates folder and certificates of a host whose kube-apiserver gets this port. Nothing runs yet.
    pub fn lay_out(port: u16, etcd: String) -> Result<TestHost> {
        let bin = binaries()?;
        let dir = tempfile::Builder::new().prefix("drydock-").tempdir()?.keep();
        let processes = Processes::new(&dir)?;
        let pki = Pki::create(&dir.join("pki"))?;
        let url = format!("https://127.0.0.1:{port}");
        let kept = std::env::var_os("DRYDOCK_AUDIT_LOGS").map(PathBuf::from);
        let name = dir.file_name().unwrap_or_default().to_owned();
        let audit_log = kept.as_ref().map_or_else(|| dir.join("audit.log"), |kept| kept.join(name));
        let (audits_programs, ports) = (kept.is_some(), Mutex::default());
        Ok(TestHost { dir, bin, pki, url, etcd, processes, audit_log, audits_programs, port, ports })
    }

    /// Returns a free port for another of its processes. Nobody else gets it before the host has ended.
    pub fn free_port(&self) -> Result<u16> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).take_another()
    }

    /// The one host that all tests of a process share; it is stopped when the process ends, however it ends.
    pub async fn shared() -> Result<Arc<TestHost>> {
        static SHARED: tokio::sync::OnceCell<Arc<TestHost>> = tokio::sync::OnceCell::const_new();
        SHARED.get_or_try_init(TestHost::start).await.cloned()
    }

    /// Kills the kube-apiserver (SIGKILL).
    pub fn kill_apiserver(&self) -> Result<bool> {
        self.processes.kill(programs::APISERVER)
    }

    /// Starts the kube-apiserver again, on its port and with its data, and waits until it serves.
    pub async fn start_apiserver(&self) -> Result<()> {
        programs::start_apiserver(self, self.port).await
    }

    /// The kubeconfig file of the cluster's admin.
    pub fn admin(&self) -> PathBuf {
        self.dir.join("admin.kubeconfig")
    }

    /// Returns a client of the admin, which belongs to the calling Tokio runtime.
    pub async fn client(&self) -> Result<Client> {
        client_of(&self.admin()).await
    }

    /// Writes a kubeconfig for a user of the given groups and returns its path.
    pub fn kubeconfig(&self, user: &str, groups: &[&str]) -> Result<PathBuf> {
        let file_name = user.replace(':', "_");
        let identity = self.pki.client(&self.dir.join("pki"), &file_name, user, groups)?;
        let path = self.dir.join(format!("{file_name}.kubeconfig"));
        std::fs::write(&path, kubeconfig(&self.url, &self.pki.ca, &identity))?;
        Ok(path)
    }

    /// Runs kubectl as the admin and returns what it printed.
    pub fn kubectl(&self, args: &[&str]) -> Result<String> {
        let out = Command::new(self.bin.join("kubectl"))
            .arg("--kubeconfig")
            .arg(self.admin())
            .args(args)
            .env("HOME", &self.dir)
            .output()
            .context("kubectl does not start")?;
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "kubectl {}: {said}{wrong}", args.join(" "));
        Ok(said)
    }

    /// The audit log of the kube-apiserver: in the host's folder, which goes with the host, or in that of
    /// DRYDOCK_AUDIT_LOGS, with all requests of our programs then.
    pub fn audit_log(&self) -> PathBuf {
        self.audit_log.clone()
    }

    /// The log of one of the processes.
    pub fn log(&self, name: &str) -> PathBuf {
        self.dir.join("logs").join(format!("{name}.log"))
    }
}

/// A client for the user of a kubeconfig file.
pub async fn client_of(kubeconfig: &Path) -> Result<Client> {
    Ok(Client::try_from(config_of(kubeconfig).await?)?)
}

/// The configuration of such a client.
pub async fn config_of(kubeconfig: &Path) -> Result<kube::Config> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let mut config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    // A watch may be silent for long; only a connection that cannot be made is a failure.
    config.connect_timeout = Some(Duration::from_secs(60));
    config.read_timeout = None;
    Ok(config)
}

/// The folder of this repository.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The host's binaries: DRYDOCK_HOST_BIN, or what `conformance/host/build` prints once it has built them.
fn binaries() -> Result<PathBuf> {
    // Locked while it builds: tests run concurrently, and one build is enough.
    static FOUND: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut found = FOUND.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(bin) = found.as_ref() {
        return Ok(bin.clone());
    }
    let bin = match std::env::var_os("DRYDOCK_HOST_BIN") {
        Some(bin) => PathBuf::from(bin),
        None => build()?,
    };
    Ok(found.insert(bin).clone())
}

fn build() -> Result<PathBuf> {
    let script = repository().join("conformance/host/build");
    let out = Command::new(&script)
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("{} does not start", script.display()))?;
    ensure!(out.status.success(), "conformance/host/build failed");
    Ok(PathBuf::from(String::from_utf8(out.stdout)?.trim()))
}
