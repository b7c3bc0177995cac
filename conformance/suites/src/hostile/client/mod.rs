//! Clients of a server: TLS connections from any address of loopback, HTTP/2 on them as clients speak it, and bytes
//! and frames as no client sends them.

mod connection;
mod frames;
mod grpc;
mod raw;
mod request;

pub use connection::{FlowWindows, StreamedBody, UserConnection};
pub use frames::{RawFrames, call_fields, fields};
pub use grpc::{Calls, NotReady, call, frame, status_of};
pub use raw::RawHttp;
pub use request::{UserRequest, UserResponse};

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use drydock_testkit::host::CertificateFiles;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A TLS connection to a server.
pub type TlsConnection = TlsStream<TcpStream>;

/// A server's port, the name in its certificate, and the caller's own certificate.
#[derive(Clone)]
pub struct ServerEndpoint {
    port: u16,
    name: ServerName<'static>,
    http1: TlsConnector,
    http2: TlsConnector,
    unnegotiated: TlsConnector,
}

impl ServerEndpoint {
    /// The port of an URL `https://127.0.0.1:PORT`, of a server that is called `name` and whose certificate
    /// is signed by the CA; a caller with an identity presents its certificate.
    pub fn new(
        url: &str,
        name: &str,
        ca: &Path,
        identity: Option<&CertificateFiles>,
    ) -> Result<ServerEndpoint> {
        let port = url.rsplit(':').next().and_then(|port| port.parse().ok());
        let config =
            |protocols: &[&[u8]]| anyhow::Ok(TlsConnector::from(Arc::new(config(ca, identity, protocols)?)));
        Ok(ServerEndpoint {
            port: port.with_context(|| format!("no port: {url}"))?,
            name: ServerName::try_from(name.to_owned())?,
            http1: config(&[b"http/1.1"])?,
            http2: config(&[b"h2"])?,
            unnegotiated: config(&[])?,
        })
    }

    /// Opens a TCP connection from an address of loopback, and sends nothing on it.
    pub async fn connect_tcp(&self, from: Ipv4Addr) -> Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.set_nodelay(true)?;
        socket.bind(SocketAddr::from((from, 0)))?;
        Ok(socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))).await?)
    }

    /// Opens a connection for HTTP/1.1.
    pub async fn http1(&self, from: Ipv4Addr) -> Result<TlsConnection> {
        Ok(self.http1.connect(self.name.clone(), self.connect_tcp(from).await?).await?)
    }

    /// Opens a connection for HTTP/2.
    pub async fn http2(&self, from: Ipv4Addr) -> Result<TlsConnection> {
        Ok(self.http2.connect(self.name.clone(), self.connect_tcp(from).await?).await?)
    }

    /// Opens a connection without saying for which protocol (ALPN).
    pub async fn unnegotiated(&self, from: Ipv4Addr) -> Result<TlsConnection> {
        Ok(self.unnegotiated.connect(self.name.clone(), self.connect_tcp(from).await?).await?)
    }

    /// `127.0.0.1:PORT`.
    pub fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// Every connection pays for a handshake of its own: nothing is resumed.
fn config(ca: &Path, identity: Option<&CertificateFiles>, protocols: &[&[u8]]) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca)? {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = CertificateDer::pem_file_iter(&identity.cert)?.collect::<Result<Vec<_>, _>>()?;
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(&identity.key)?)?
        }
    };
    config.resumption = Resumption::disabled();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}
