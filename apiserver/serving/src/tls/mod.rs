//! TLS of the secure port: the serving certificate, made if none is given and re-read when it changes, and client
//! certificates, which are asked for in the handshake and judged after it.

pub mod client_cert;
pub mod self_signed;
pub mod serving;

use std::sync::Arc;

use rustls::ServerConfig;

pub use client_cert::ClientCa;
pub use serving::{Serving, ServingCertificate};

/// The TLS configuration of a listener: TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, client certificates asked for but not
/// judged in the handshake (Kubernetes: `RequestClientCert`), so that a wrong one gets a Status and not an alert. Only a
/// chain of more than 4 certificates, or 16 KiB, gets an alert.
pub fn server_config(serving: Arc<ServingCertificate>) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(client_cert::RequestClientCert::new(provider)))
        .with_cert_resolver(serving);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
