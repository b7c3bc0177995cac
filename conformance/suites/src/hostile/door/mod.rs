//! The ways to a server: a TLS connection from any address of loopback, HTTP/2 on it as a client speaks it, and bytes
//! and frames as no client sends them.

mod ask;
mod call;
mod frames;
mod line;
mod raw;

pub use ask::{UserRequest, UserResponse};
pub use call::{Calls, call, frame, status_of};
pub use frames::{RawFrames, call_fields, fields};
pub use line::{FlowWindows, StreamedBody, UserConnection};
pub use raw::RawHttp;

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
pub type DoorStream = TlsStream<TcpStream>;

/// A server's port, and the certificate that is shown there.
#[derive(Clone)]
pub struct ServerDoor {
    port: u16,
    name: ServerName<'static>,
    http1: TlsConnector,
    http2: TlsConnector,
}

impl ServerDoor {
    /// The port of an URL `https://127.0.0.1:PORT`, of a server that is called `name` and whose certificate
    /// is signed by the CA; a caller with an identity presents its certificate.
    pub fn new(url: &str, name: &str, ca: &Path, identity: Option<&CertificateFiles>) -> Result<ServerDoor> {
        let port = url.rsplit(':').next().and_then(|port| port.parse().ok());
        let config =
            |protocol: &[u8]| anyhow::Ok(TlsConnector::from(Arc::new(config(ca, identity, protocol)?)));
        Ok(ServerDoor {
            port: port.with_context(|| format!("no port: {url}"))?,
            name: ServerName::try_from(name.to_owned())?,
            http1: config(b"http/1.1")?,
            http2: config(b"h2")?,
        })
    }

    /// A TCP connection from an address of loopback, and no word on it.
    pub async fn knock(&self, from: Ipv4Addr) -> Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.set_nodelay(true)?;
        socket.bind(SocketAddr::from((from, 0)))?;
        Ok(socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))).await?)
    }

    /// A connection for HTTP/1.1.
    pub async fn http1(&self, from: Ipv4Addr) -> Result<DoorStream> {
        Ok(self.http1.connect(self.name.clone(), self.knock(from).await?).await?)
    }

    /// A connection for HTTP/2.
    pub async fn http2(&self, from: Ipv4Addr) -> Result<DoorStream> {
        Ok(self.http2.connect(self.name.clone(), self.knock(from).await?).await?)
    }

    /// `127.0.0.1:PORT`.
    pub fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// Every connection pays for a handshake of its own: nothing is resumed.
fn config(ca: &Path, identity: Option<&CertificateFiles>, protocol: &[u8]) -> Result<ClientConfig> {
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
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}
