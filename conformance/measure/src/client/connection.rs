//! Connections by HTTP/2 over TLS, and how much a server may send on them unread.

use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Credentials;

/// How much a server may send before the client has read it, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionWindows {
    stream: u32,
    connection: u32,
}

impl ConnectionWindows {
    /// Those of client-go (golang.org/x/net/http2).
    pub const USUAL: ConnectionWindows = ConnectionWindows { stream: 4 << 20, connection: 1 << 30 };
    /// A stream's window is so small that the server soon feels a stream that is not read, while
    /// its connection continues.
    pub const NARROW: ConnectionWindows = ConnectionWindows { stream: 65_535, connection: 1 << 30 };
    /// Windows that are so small that the server soon feels a client that does not read (RFC 9113,
    /// 6.9.2: the initial ones).
    pub const SMALL: ConnectionWindows = ConnectionWindows { stream: 65_535, connection: 65_535 };
}

/// TLS by the certificate of a client.
pub(super) fn client_config(credentials: &Credentials) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&credentials.ca)? {
        roots.add(certificate?)?;
    }
    let chain = CertificateDer::pem_file_iter(&credentials.cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&credentials.key)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Opens a connection to a port on loopback.
pub(super) async fn open(
    tls: &TlsConnector,
    port: u16,
    windows: ConnectionWindows,
) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let stream = tls.connect(ServerName::try_from("127.0.0.1")?, stream).await?;
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(windows.stream)
        .initial_connection_window_size(windows.connection)
        .max_frame_size(1 << 20)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::spawn(connection);
    Ok(sender)
}
