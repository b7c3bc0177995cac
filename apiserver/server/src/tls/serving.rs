//! The serving certificate: read from its files, and read again when they change.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

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

    /// Keeps the certificate equal to its files until the future is dropped. A bad file is reported and the last good
    /// certificate stays in use.
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
pub(super) fn read(certificate_file: &PathBuf, key_file: &PathBuf) -> io::Result<CertifiedKey> {
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
