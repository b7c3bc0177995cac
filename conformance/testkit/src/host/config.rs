//! Kubeconfig files.

use std::path::Path;

use super::pki::CertificateFiles;

/// A kubeconfig with one cluster and one user who shows a client certificate.
pub fn kubeconfig(server: &str, ca: &Path, identity: &CertificateFiles) -> String {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "drydock", "cluster": {"server": server, "certificate-authority": ca}}],
        "users": [{"name": "user", "user": {"client-certificate": identity.cert, "client-key": identity.key}}],
        "contexts": [{"name": "drydock", "context": {"cluster": "drydock", "user": "user"}}],
        "current-context": "drydock",
    })
    .to_string()
}
