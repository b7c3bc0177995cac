//! The serving certificate of the options: given, or made and renewed.

use anyhow::Context;

use super::options::Serving;
use crate::tls::{ServingCertificate, self_signed};

/// Loads the certificate; makes it, and keeps it fresh, where none is given.
pub(super) fn load(serving: &Serving) -> anyhow::Result<ServingCertificate> {
    if let Some((certificate, key)) = &serving.files {
        return ServingCertificate::load(certificate.clone(), key.clone()).context("--tls-cert-file");
    }
    let mut names = serving.names.clone();
    names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    let files = self_signed::ensure(&serving.cert_dir, &names)
        .with_context(|| format!("--cert-dir: {}", serving.cert_dir.display()))?;
    tokio::spawn(self_signed::renew(serving.cert_dir.clone(), names));
    Ok(ServingCertificate::load(files.certificate, files.key)?)
}
