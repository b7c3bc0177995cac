//! The address of a webhook, and connections to it (k8s.io/apiserver pkg/util/webhook/client.go).

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use drydock_logging::with_causes;
use drydock_machinery::quote::go_quote;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tower::Service as Connect;

/// A client for one webhook; it reuses connections.
pub type WebhookClient = HttpClient<HttpsConnector<Dialer>, Full<Bytes>>;

/// A Service of the host, by namespace, name and port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ServiceRef {
    namespace: String,
    name: String,
    port: u16,
}

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
            (Some(ServiceRef { namespace, name, port }), _) => {
                let path =
                    it.service.as_ref().and_then(|service| service.path.as_deref()).unwrap_or_default();
                Ok(format!("https://{name}.{namespace}.svc:{port}/{}", path.trim_start_matches('/')))
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

/// Connects to the address of a URL, or to the address that the host has for a Service.
#[derive(Clone)]
pub struct Dialer {
    service: Option<ServiceRef>,
    host: Client,
}

impl Connect<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move { dialer.dial(&uri).await.map(TokioIo::new) })
    }
}

impl Dialer {
    async fn dial(&self, uri: &Uri) -> io::Result<TcpStream> {
        let (host, port) = match &self.service {
            Some(service) => self.resolve(service).await.map_err(io::Error::other)?,
            None => {
                let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
                (host.to_owned(), uri.port_u16().unwrap_or(443))
            }
        };
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
                _ => error.to_string(),
            };
            let address =
                if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
            io::Error::new(error.kind(), format!("dial tcp {address}: {why}"))
        })?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Resolves a Service as kube-apiserver does (k8s.io/kube-aggregator pkg/apiserver/resolvers.go, k8s.io/apiserver
    /// pkg/util/proxy, ResolveCluster).
    async fn resolve(&self, wanted: &ServiceRef) -> Result<(String, u16), String> {
        let services: Api<Service> = Api::namespaced(self.host.clone(), &wanted.namespace);
        let found = services.get_opt(&wanted.name).await;
        let found = found.map_err(|error| {
            format!("cannot ask the host for service {}: {}", go_quote(&wanted.name), with_causes(&error))
        })?;
        let service = found.ok_or_else(|| format!("service {} not found", go_quote(&wanted.name)))?;
        let spec = service.spec.unwrap_or_default();
        let missing =
            || format!("no service port {} found for service {}", wanted.port, go_quote(&wanted.name));
        if spec.type_.as_deref() == Some("ExternalName") {
            return Ok((spec.external_name.unwrap_or_default(), wanted.port));
        }
        let ports = spec.ports.unwrap_or_default();
        if !ports.iter().any(|port| port.port == i32::from(wanted.port)) {
            return Err(missing());
        }
        match spec.cluster_ip.as_deref() {
            None | Some("" | "None") => Err("cannot route to service with ClusterIP \"None\"".to_owned()),
            Some(address) => Ok((address.to_owned(), wanted.port)),
        }
    }
}
