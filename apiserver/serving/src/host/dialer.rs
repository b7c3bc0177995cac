//! Connections to a Service of the host, at the address that kube-apiserver would use: they need no DNS of the cluster
//! (k8s.io/kube-aggregator pkg/apiserver/resolvers.go, k8s.io/apiserver pkg/util/proxy, ResolveCluster).

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use drydock_logging::with_causes;
use drydock_machinery::quote::go_quote;
use http::Uri;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use tokio::net::TcpStream;
use tower::Service as Connect;

/// A Service of the host, by namespace, name and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The port of the Service, not that of a pod.
    pub port: u16,
}

impl ServiceRef {
    /// `https://NAME.NAMESPACE.svc:PORT`. The certificate of the server has to be for that name.
    pub fn url(&self) -> String {
        let Self { namespace, name, port } = self;
        format!("https://{name}.{namespace}.svc:{port}")
    }

    /// Returns the ClusterIP, or the external name, and the port. Fails if the Service cannot be read, has no such port,
    /// or is headless.
    async fn address(&self, host: &Client) -> Result<(String, u16), String> {
        let services: Api<Service> = Api::namespaced(host.clone(), &self.namespace);
        let found = services.get_opt(&self.name).await;
        let found = found.map_err(|error| {
            format!("cannot ask the host for service {}: {}", go_quote(&self.name), with_causes(&error))
        })?;
        let service = found.ok_or_else(|| format!("service {} not found", go_quote(&self.name)))?;
        let spec = service.spec.unwrap_or_default();
        let missing = || format!("no service port {} found for service {}", self.port, go_quote(&self.name));
        if spec.type_.as_deref() == Some("ExternalName") {
            return Ok((spec.external_name.unwrap_or_default(), self.port));
        }
        let ports = spec.ports.unwrap_or_default();
        if !ports.iter().any(|port| port.port == i32::from(self.port)) {
            return Err(missing());
        }
        match spec.cluster_ip.as_deref() {
            None | Some("" | "None") => Err("cannot route to service with ClusterIP \"None\"".to_owned()),
            Some(address) => Ok((address.to_owned(), self.port)),
        }
    }
}

/// Connects to the address of a URL, or to the address that the host has for a Service at that moment.
#[derive(Clone)]
pub struct Dialer {
    /// The Service; the URL's own address if absent.
    pub service: Option<ServiceRef>,
    /// Reads the Service: `get` on it.
    pub host: Client,
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
            Some(service) => service.address(&self.host).await.map_err(io::Error::other)?,
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
}
