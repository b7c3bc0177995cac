//! A client of an API server at its Service, past the host's aggregator.
//!
//! It never repeats a request. A connection whose server answers 503 or 504, or does not answer, is used for no other request:
//! behind a Service, the next connection may lead to another replica.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use http::StatusCode;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::{Client as HttpClient, Error as HttpError};
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tower::ServiceBuilder;
use tower::timeout::TimeoutLayer;

use super::answer_limit::limited;
use super::dialer::{Dialer, ServiceRef};
use super::observe::{Observe, cause, causes};
use super::{KeepAlive, builder, client_over};

/// A server answers with these when it is not ready or ends, and when its storage does not answer it.
const LEFT_AFTER: &[StatusCode] = &[StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];

/// Longest time for a connection to be made, the reading of the Service and TLS included. Whoever waits for it has the
/// host's aggregator as another way.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);

/// Returns a client of the API server behind `service`, with a connection of its own, over HTTP/2 where the server speaks it.
/// It believes the certificates of `ca_bundle` (PEM) for the name `NAME.NAMESPACE.svc`, and shows the token in
/// `token_file`, which it reads again at least once a minute. `host` reads the Service whenever a connection is made.
///
/// # Errors
/// The bundle has no certificate, or the token cannot be read.
pub fn service_client(
    host: &Client,
    service: &ServiceRef,
    ca_bundle: &[u8],
    token_file: &Path,
) -> anyhow::Result<Client> {
    let mut config = Config::new(service.url().parse().context("the Service's name makes no URL")?);
    config.root_cert = Some(certificates(ca_bundle)?);
    config.auth_info.token_file = Some(token_file.display().to_string());
    let dialer = Dialer { service: Some(service.clone()), host: host.clone() };
    let https = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_only();
    let connector = ServiceBuilder::new()
        .map_future(Box::pin)
        .layer(TimeoutLayer::new(CONNECTED_WITHIN))
        .service(https.enable_all_versions().wrap_connector(dialer));
    let http: HttpClient<_, Body> = builder(KeepAlive::default()).build(connector);
    client_over(limited(http, LEFT_AFTER), &config, Observe::requests_of(&config.cluster_url))
}

fn certificates(pem: &[u8]) -> anyhow::Result<Vec<Vec<u8>>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|error| anyhow::anyhow!("the CA bundle is no PEM: {error}"))?;
    anyhow::ensure!(!read.is_empty(), "the CA bundle has no certificate");
    Ok(read.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// Why no connection could be made for a request, which was not sent then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// No TCP connection, or none in time.
    Connect(String),
    /// The TLS handshake failed: the certificate is for another name or by another CA, among others.
    Tls(String),
}

impl ConnectFailure {
    /// Returns the failure if `error` is about a connection that could not be made. Any other error leaves open whether
    /// the server has received the request.
    pub fn of(error: &kube::Error) -> Option<Self> {
        let failed = causes(error).find(|cause| cause.downcast_ref().is_some_and(HttpError::is_connect))?;
        let is_tls = causes(failed).any(|cause| cause.is::<rustls::Error>());
        Some(if is_tls { Self::Tls(cause(failed)) } else { Self::Connect(cause(failed)) })
    }
}
