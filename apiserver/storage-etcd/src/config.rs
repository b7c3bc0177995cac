//! Settings of the etcd backend, and the connections that they describe.

use std::path::{Path, PathBuf};
use std::time::Duration;

use drydock_storage::backend::{BackendError, Result};
use drydock_storage::retention::Retention;
use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};

use crate::error::translate;

/// etcd refuses clients that ping more often than every 5 s (--grpc-keepalive-min-time).
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How long etcd may take to answer a keep-alive ping.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one endpoint may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings of the etcd backend (kube-apiserver: --etcd-servers, --etcd-prefix, --etcd-cafile, --etcd-certfile,
/// --etcd-keyfile).
#[derive(Clone, Debug, Default)]
pub struct EtcdConfig {
    /// URLs of the members.
    pub servers: Vec<String>,
    /// The prefix of every key of this installation.
    pub prefix: String,
    /// File of the CA that signed the members' certificates.
    pub ca_file: Option<PathBuf>,
    /// File of this client's certificate.
    pub cert_file: Option<PathBuf>,
    /// File of the key of this client's certificate.
    pub key_file: Option<PathBuf>,
    /// How long history is kept while half of etcd's quota or more is used.
    pub retention: Retention,
}

/// Connects to the members.
#[derive(Clone)]
pub(super) struct Connector {
    servers: Vec<String>,
    options: ConnectOptions,
}

impl Connector {
    /// Reads and checks the settings. Fails if no server is named or a certificate cannot be read.
    pub async fn new(config: &EtcdConfig) -> Result<Self> {
        if config.servers.is_empty() {
            return Err(BackendError::Unavailable("no etcd server is named".to_owned()));
        }
        let options = ConnectOptions::new()
            .with_keep_alive(KEEP_ALIVE, KEEP_ALIVE_TIMEOUT)
            .with_keep_alive_while_idle(true)
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_require_leader(true);
        let options = match tls(config).await? {
            Some(tls) => options.with_tls(tls),
            None => options,
        };
        Ok(Self { servers: config.servers.clone(), options })
    }

    /// Number of members.
    pub fn members(&self) -> usize {
        self.servers.len()
    }

    /// Returns a channel to a member. It connects when it is first used, and again when the connection breaks.
    pub async fn connect(&self, member: usize) -> Result<Client> {
        let server = &self.servers[member % self.servers.len()];
        Client::connect([server], Some(self.options.clone())).await.map_err(translate)
    }
}

async fn tls(config: &EtcdConfig) -> Result<Option<TlsOptions>> {
    let mut tls = TlsOptions::new();
    if let Some(ca) = &config.ca_file {
        tls = tls.ca_certificate(Certificate::from_pem(read(ca, "CERTIFICATE").await?));
    }
    match (&config.cert_file, &config.key_file) {
        (Some(cert), Some(key)) => {
            tls = tls.identity(Identity::from_pem(
                read(cert, "CERTIFICATE").await?,
                read(key, "PRIVATE KEY").await?,
            ))
        }
        (None, None) => {}
        _ => {
            let why = "a certificate for etcd needs its key, and a key its certificate";
            return Err(BackendError::Unavailable(why.to_owned()));
        }
    }
    Ok((config.ca_file.is_some() || config.cert_file.is_some()).then_some(tls))
}

/// Reads a PEM file. Fails if it has no section `what`: such a file would otherwise be ignored without an error.
async fn read(path: &Path, what: &str) -> Result<Vec<u8>> {
    let failed =
        |why: &dyn std::fmt::Display| BackendError::Unavailable(format!("{}: {why}", path.display()));
    let pem = tokio::fs::read(path).await.map_err(|error| failed(&error))?;
    let label = format!("{what}-----");
    match pem.windows(label.len()).any(|window| window == label.as_bytes()) {
        true => Ok(pem),
        false => Err(failed(&format!("has no {what} in PEM"))),
    }
}
