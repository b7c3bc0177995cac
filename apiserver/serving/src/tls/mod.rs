//! TLS of the secure port: the serving certificate, made if none is given and re-read when its files change, and client
//! certificates, which are asked for in the handshake and judged after it.

pub mod client_cert;
pub mod self_signed;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use anyhow::Context;
use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

pub use client_cert::ClientCa;
use client_cert::RequestClientCert;

use crate::tasks::ProgramTasks;

/// The TLS configuration of a listener: TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, client certificates asked for but not
/// judged in the handshake (Kubernetes: `RequestClientCert`), so that a wrong one gets a Status and not an alert. Only a
/// chain of more than 4 certificates, or 16 KiB, gets an alert.
pub fn server_config(serving: Arc<ServingCertificate>) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(RequestClientCert::new(provider)))
        .with_cert_resolver(serving);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// How often the files are compared with what is served (Kubernetes re-reads within a minute).
const RELOAD_EVERY: Duration = Duration::from_secs(30);

/// The certificate and key that new connections are served with.
#[derive(Debug)]
pub struct ServingCertificate {
    certificate_file: PathBuf,
    key_file: PathBuf,
    current: ArcSwap<CertifiedKey>,
}

impl ServingCertificate {
    /// Reads both files; the error names the file and what is wrong with it.
    pub fn load(certificate_file: PathBuf, key_file: PathBuf) -> io::Result<Self> {
        let current = ArcSwap::from_pointee(read(&certificate_file, &key_file)?);
        Ok(Self { certificate_file, key_file, current })
    }

    /// Loads the certificate again when its files change, until the future is dropped. A bad file is logged, and the
    /// last good certificate stays in use.
    pub async fn follow(self: Arc<Self>) {
        let mut tick = tokio::time::interval(RELOAD_EVERY);
        loop {
            tick.tick().await;
            self.reload();
        }
    }

    fn reload(&self) {
        match read(&self.certificate_file, &self.key_file) {
            Ok(new) if new.cert != self.current.load().cert => {
                tracing::info!(file = %self.certificate_file.display(), "serving certificate reloaded");
                self.current.store(Arc::new(new));
            }
            Ok(_) => {}
            Err(error) => {
                tracing::error!(%error, "serving certificate not reloaded; the last good one stays in use")
            }
        }
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

/// A certificate chain and the key that fits it.
fn read(certificate_file: &PathBuf, key_file: &PathBuf) -> io::Result<CertifiedKey> {
    let named = |file: &PathBuf, what: String| io::Error::other(format!("{}: {what}", file.display()));
    let pem = fs::read(certificate_file).map_err(|e| named(certificate_file, e.to_string()))?;
    let chain = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| named(certificate_file, format!("not a PEM certificate: {e:?}")))?;
    if chain.is_empty() {
        return Err(named(certificate_file, "holds no PEM certificate".to_owned()));
    }
    let pem = fs::read(key_file).map_err(|e| named(key_file, e.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|e| named(key_file, format!("not a PEM private key: {e:?}")))?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    CertifiedKey::from_der(chain, key, &provider)
        .map_err(|e| named(certificate_file, format!("does not fit its key {}: {e}", key_file.display())))
}

/// Where the serving certificate comes from.
#[derive(Clone, Debug)]
pub struct CertificateSource {
    /// --tls-cert-file and --tls-private-key-file; made in `cert_dir` if absent.
    pub files: Option<(PathBuf, PathBuf)>,
    /// --cert-dir
    pub cert_dir: PathBuf,
    /// Names and addresses of a certificate that is made, in addition to those of loopback.
    pub names: Vec<String>,
}

impl CertificateSource {
    /// Loads the certificate, makes it where none is given, and keeps it fresh from now on, by `tasks`: it is read again when
    /// its files change, and one that was made is replaced before it ends.
    ///
    /// # Errors
    /// The certificate cannot be loaded or made. The error names the option.
    pub fn certificate(&self, tasks: &ProgramTasks) -> anyhow::Result<Arc<ServingCertificate>> {
        let certificate = Arc::new(match &self.files {
            Some((certificate, key)) => {
                ServingCertificate::load(certificate.clone(), key.clone()).context("--tls-cert-file")?
            }
            None => self.made(tasks)?,
        });
        tasks.spawn_endless("reading of the serving certificate", certificate.clone().follow());
        Ok(certificate)
    }

    fn made(&self, tasks: &ProgramTasks) -> anyhow::Result<ServingCertificate> {
        let mut names = self.names.clone();
        names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
        let files = self_signed::ensure(&self.cert_dir, &names)
            .with_context(|| format!("--cert-dir: {}", self.cert_dir.display()))?;
        let renewal = self_signed::renew(self.cert_dir.clone(), names);
        tasks.spawn_endless("renewal of the serving certificate", renewal);
        Ok(ServingCertificate::load(files.certificate, files.key)?)
    }
}
