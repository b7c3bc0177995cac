//! The address of a webhook, and its client (k8s.io/apiserver pkg/util/webhook/client.go).

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use drydock_serving::host::{Dialer, ServiceRef};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use kube::Client;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// A client for one webhook; it reuses connections.
pub type WebhookClient = HttpClient<HttpsConnector<Dialer>, Full<Bytes>>;

/// The address of a webhook.
pub struct Endpoint {
    /// The URL, or why there is none.
    url: Result<String, String>,
    service: Option<ServiceRef>,
    ca: Vec<u8>,
    client: OnceLock<Result<WebhookClient, String>>,
}

impl Endpoint {
    /// Reads the address from a configuration.
    pub fn of(it: &WebhookClientConfig) -> Self {
        let service = it.service.as_ref().map(|service| ServiceRef {
            namespace: service.namespace.clone(),
            name: service.name.clone(),
            port: service.port.and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
        });
        let url = match (&service, &it.url) {
            (Some(service), _) => {
                let path =
                    it.service.as_ref().and_then(|service| service.path.as_deref()).unwrap_or_default();
                Ok(format!("{}/{}", service.url(), path.trim_start_matches('/')))
            }
            (None, Some(url)) => Ok(url.clone()),
            (None, None) => Err("webhook configuration must have either service or URL".to_owned()),
        };
        let ca = it.ca_bundle.as_ref().map(|bundle| bundle.0.clone()).unwrap_or_default();
        Self { url, service, ca, client: OnceLock::new() }
    }

    /// The URL, or why there is none.
    pub fn url(&self) -> Result<&str, String> {
        self.url.as_deref().map_err(Clone::clone)
    }

    /// Returns the client of this webhook, which is created once.
    pub fn client(&self, host: &Client) -> Result<&WebhookClient, String> {
        let made = self.client.get_or_init(|| {
            let tls = trusting(&self.ca)?;
            let dialer = Dialer { service: self.service.clone(), host: host.clone() };
            let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1();
            Ok(HttpClient::builder(TokioExecutor::new()).build(connector.wrap_connector(dialer)))
        });
        made.as_ref().map_err(Clone::clone)
    }
}

/// Returns a TLS configuration that trusts the CA bundle, or the system's CAs if the bundle is empty.
fn trusting(bundle: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    if bundle.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        let certificate = certificate
            .map_err(|_| "unable to load root certificates: unable to parse bytes as PEM block".to_owned())?;
        roots.add(certificate).map_err(|error| format!("unable to load root certificates: {error}"))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
