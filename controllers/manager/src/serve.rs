//! The secure port: HTTPS for probes and scrapers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use drydock_server::tls::{ServingCertificate, self_signed, server_config};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::flags::Flags;

/// Probes and scrapers are few; more than this at once is somebody else.
const MAX_CONNECTIONS: usize = 256;
/// Time in which a client must have sent its handshake, and its headers.
const PATIENCE: Duration = Duration::from_secs(15);

/// A port that is bound, and the certificate to serve it with.
pub struct Port {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    certificate: Arc<ServingCertificate>,
}

/// Binds the port; the error names it and the flag to change.
pub async fn bind(address: SocketAddr, flags: &Flags) -> anyhow::Result<Port> {
    let certificate = Arc::new(certificate(address, flags)?);
    let acceptor = TlsAcceptor::from(Arc::new(server_config(certificate.clone())?));
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("--secure-port: cannot listen on {address}"))?;
    Ok(Port { listener, acceptor, certificate })
}

fn certificate(address: SocketAddr, flags: &Flags) -> anyhow::Result<ServingCertificate> {
    if let (Some(certificate), Some(key)) = (&flags.tls_cert_file, &flags.tls_private_key_file) {
        return ServingCertificate::load(certificate.clone(), key.clone()).context("--tls-cert-file");
    }
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    let files = self_signed::ensure(&flags.cert_dir, &names)
        .with_context(|| format!("--cert-dir: {}", flags.cert_dir.display()))?;
    Ok(ServingCertificate::load(files.certificate, files.key)?)
}

/// Serves until `stop`.
pub async fn serve(port: Port, router: Router, stop: CancellationToken) {
    let Port { listener, acceptor, certificate } = port;
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let reload = certificate.follow();
    tokio::pin!(reload);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            () = reload.as_mut() => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        // Too many at once: the newest is turned away, so that probes that are under way finish.
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let (acceptor, router) = (acceptor.clone(), router.clone());
        tokio::spawn(async move {
            connection(stream, acceptor, router).await;
            drop(place);
        });
    }
}

/// Out of file descriptors, most likely: give connections time to close.
async fn pause_after(error: &io::Error) {
    warn!(%error, "cannot accept a connection");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, router: Router) {
    let stream = match tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!(%error, "TLS handshake failed"),
        Err(_) => return debug!("TLS handshake timed out"),
    };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(PATIENCE);
    let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = served.await {
        debug!(error, "connection ended");
    }
}
