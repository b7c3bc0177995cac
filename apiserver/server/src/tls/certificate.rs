//! The serving certificate that options name: given, or made; either is kept fresh.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;

use super::{ServingCertificate, self_signed};

/// Where the serving certificate comes from.
#[derive(Clone, Debug)]
pub struct Serving {
    /// --tls-cert-file and --tls-private-key-file; made in `cert_dir` if absent.
    pub files: Option<(PathBuf, PathBuf)>,
    /// --cert-dir
    pub cert_dir: PathBuf,
    /// Names and addresses that a certificate which is made carries, beside those of loopback.
    pub names: Vec<String>,
}

impl Serving {
    /// Loads the certificate, makes it where none is given, and keeps it fresh from now on: it is read again when its
    /// files change, and one that was made is replaced before it ends.
    ///
    /// # Errors
    /// If it cannot be had; they name the option.
    pub fn certificate(&self) -> anyhow::Result<Arc<ServingCertificate>> {
        let certificate = Arc::new(match &self.files {
            Some((certificate, key)) => {
                ServingCertificate::load(certificate.clone(), key.clone()).context("--tls-cert-file")?
            }
            None => self.made()?,
        });
        tokio::spawn(certificate.clone().follow());
        Ok(certificate)
    }

    fn made(&self) -> anyhow::Result<ServingCertificate> {
        let mut names = self.names.clone();
        names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
        let files = self_signed::ensure(&self.cert_dir, &names)
            .with_context(|| format!("--cert-dir: {}", self.cert_dir.display()))?;
        tokio::spawn(self_signed::renew(self.cert_dir.clone(), names));
        Ok(ServingCertificate::load(files.certificate, files.key)?)
    }
}
