//! The lower bound: the libraries under Drydock and nothing of Drydock. HTTP by hyper, TLS by rustls, objects as JSON of
//! serde_json, one SQLite in WAL mode with durable commits of many writes at a time. It knows no users, rights,
//! schemas, field managers or selectors, takes every object as it is and keeps no history, so that what a complete
//! server adds can be told from what its libraries cost on this machine.

mod answer;
mod store;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use store::Store;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// As Drydock's port has it.
const MAX_STREAMS: u32 = 1000;

/// Objects over HTTP/2 and TLS from SQLite, and nothing else
#[derive(Parser)]
struct Arguments {
    /// Port on loopback
    #[arg(long)]
    port: u16,
    /// Certificate of the server
    #[arg(long)]
    cert: PathBuf,
    /// Its key
    #[arg(long)]
    key: PathBuf,
    /// CA of the clients
    #[arg(long)]
    client_ca: PathBuf,
    /// Database file to make
    #[arg(long)]
    data: PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let acceptor = TlsAcceptor::from(Arc::new(tls(&arguments)?));
    let store = Arc::new(Store::create(&arguments.data)?);
    let listener = TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let (acceptor, store) = (acceptor.clone(), store.clone());
        tokio::spawn(async move {
            // A client that disconnects concerns no other.
            let _ = connection(stream, &acceptor, store).await;
        });
    }
}

async fn connection(stream: TcpStream, acceptor: &TlsAcceptor, store: Arc<Store>) -> Result<()> {
    stream.set_nodelay(true)?;
    let stream = TokioIo::new(acceptor.accept(stream).await?);
    let service = service_fn(move |request| {
        let store = store.clone();
        async move { Ok::<_, Infallible>(answer::to(request, &store).await) }
    });
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http2().max_concurrent_streams(MAX_STREAMS);
    http.serve_connection(stream, service).await.map_err(|error| anyhow!("{error}"))
}

fn tls(arguments: &Arguments) -> Result<ServerConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&arguments.client_ca)? {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()?;
    let chain = CertificateDer::pem_file_iter(&arguments.cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&arguments.key)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .context("--cert and --key do not belong together")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
