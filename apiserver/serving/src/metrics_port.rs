//! The secure port of a program that serves no API: HTTPS for probes and scrapers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::auth::authn::{Peer, Proof};
use crate::auth::delegated::DelegatedAuth;
use crate::health::Health;
use crate::request::query::Query;
use crate::serve::{self, Bounds, RequestHandler};
use crate::tasks::ProgramTasks;
use crate::tls::{CertificateSource, server_config};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// The limits are low, because probes and scrapers are few and quick.
const BOUNDS: Bounds = Bounds {
    connections: 256,
    connections_per_address: 64,
    streams: 16,
    headers: Duration::from_secs(15),
    idle: Duration::from_secs(30),
    drain: Duration::from_secs(5),
};

/// A port that is bound, with its TLS configuration.
pub struct BoundPort {
    listener: TcpListener,
    tls: ServerConfig,
}

/// Binds the port, whose certificate `tasks` keep fresh; the error names it and the flag to change.
pub async fn bind(
    address: SocketAddr,
    serving: &CertificateSource,
    tasks: &ProgramTasks,
) -> anyhow::Result<BoundPort> {
    let tls = server_config(serving.certificate(tasks)?)?;
    Ok(BoundPort { listener: serve::bind(address).await?, tls })
}

/// Serves until `stop`.
pub async fn serve(port: BoundPort, paths: ServedPaths, stop: CancellationToken) {
    serve::serve(port.listener, port.tls, Arc::new(paths), stop, BOUNDS).await;
}

/// The paths of the port: probes for every caller, without reasons; anything else for callers that are
/// authorized. The paths of single checks, which give reasons, are not served.
pub struct ServedPaths {
    /// The health checks that answer probes.
    pub health: Health,
    /// Authenticates and authorizes the callers of all other paths.
    pub auth: DelegatedAuth,
    /// /metrics.
    pub metrics: Router,
}

impl RequestHandler for ServedPaths {
    type Body = Body;

    async fn handle(&self, request: Request<Body>, peer: &Peer) -> Response<Body> {
        let query = Query::parse(request.uri().query().unwrap_or_default());
        if let Some(answer) = self.health.probe(request.method(), request.uri().path(), &query) {
            peer.proves(Proof::Unasked);
            return answer;
        }
        let (mut parts, body) = request.into_parts();
        if let Some(refusal) = self.auth.refusal(&mut parts, peer).await {
            return refusal;
        }
        let request = Request::from_parts(parts, body);
        self.metrics.clone().oneshot(request).await.unwrap_or_else(|never| match never {})
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::convert::Infallible;

    use kube::Client;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, RootCertStore};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;

    use super::*;
    use crate::clock::testing::time_lapse;

    /// Authentication by a host that knows no user.
    fn closed() -> DelegatedAuth {
        let nobody = |_: Request<kube::client::Body>| async {
            Ok::<_, Infallible>(Response::new(kube::client::Body::from(b"{}".to_vec())))
        };
        DelegatedAuth::new(Client::new(tower::service_fn(nobody), "default"))
    }

    /// /readyz showed every caller what was missing.
    #[tokio::test]
    async fn probes_are_answered_without_reasons_and_nothing_else_is_open() {
        let ready = Arc::new(|| Err("caches of pods are not complete".to_owned()));
        let health = Health::default().live("ping", Arc::new(|| Ok(()))).ready("caches", ready);
        let paths = ServedPaths { health, auth: closed(), metrics: Router::new() };
        for (path, code) in [
            ("/livez", 200),
            ("/healthz?verbose", 200),
            ("/readyz", 500),
            ("/readyz?verbose", 500),
            ("/readyz/caches", 401),
            ("/livez/ping", 401),
            ("/metrics", 401),
        ] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let answer = paths.handle(request, &Peer::default()).await;
            assert_eq!(answer.status(), code, "{path}");
            let text = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
            assert!(!String::from_utf8_lossy(&text).contains("pods"), "{path}");
        }
    }

    /// Connects with TLS to a port.
    async fn connect(protocols: &[&[u8]]) -> TlsStream<TcpStream> {
        let folder = tempfile::tempdir().unwrap();
        let cert_dir = folder.path().to_owned();
        let serving = CertificateSource { files: None, cert_dir: cert_dir.clone(), names: Vec::new() };
        let tasks = ProgramTasks::new(CancellationToken::new());
        let port = bind(([127, 0, 0, 1], 0).into(), &serving, &tasks).await.unwrap();
        let address = port.listener.local_addr().unwrap();
        let paths = ServedPaths { health: Health::default(), auth: closed(), metrics: Router::new() };
        tokio::spawn(serve(port, paths, CancellationToken::new()));

        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(cert_dir.join("ca.crt")).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let client =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut client = client.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        TlsConnector::from(Arc::new(client)).connect(name, stream).await.unwrap()
    }

    /// A client that finished the TLS handshake and sent nothing kept its connection forever: with 256 of
    /// them, no probe was answered any more.
    #[tokio::test]
    async fn a_client_that_says_nothing_is_not_waited_for() {
        let mut stream = connect(&[]).await;
        // Ends when the server closes.
        let _ = time_lapse(stream.read_to_end(&mut Vec::new())).await;
    }

    /// Whether a HEADERS frame is among these frames.
    fn has_head(mut frames: &[u8]) -> bool {
        while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = frames {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if *kind == 1 && rest.len() >= length {
                return true;
            }
            frames = rest.get(length..).unwrap_or_default();
        }
        false
    }

    /// A client whose window is 0 bytes kept its connection, and a thousand answers on it, for ever.
    #[tokio::test]
    async fn a_client_without_a_user_that_reads_no_answer_is_not_waited_for() {
        for path in ["/livez", "/metrics"] {
            let mut stream = connect(&[b"h2"]).await;
            let mut hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
            // SETTINGS with INITIAL_WINDOW_SIZE 0, then HEADERS: GET, https, the authority and the path.
            hello.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
            let length = u8::try_from(path.len()).unwrap();
            let block = [&[0x82, 0x87, 0x01, 1, b'a', 0x04, length], path.as_bytes()].concat();
            hello.extend([0, 0, u8::try_from(block.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
            hello.extend(block);
            stream.write_all(&hello).await.unwrap();
            stream.flush().await.unwrap();
            let mut answers = Vec::new();
            while !has_head(&answers) {
                assert!(stream.read_buf(&mut answers).await.unwrap() > 0, "{path} is answered: {answers:?}");
            }
            // Ends when the server closes.
            let _ = time_lapse(stream.read_to_end(&mut answers)).await;
        }
    }
}
