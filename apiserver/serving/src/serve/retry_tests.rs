//! Handshakes in which the client has to send another ClientHello.

#![allow(clippy::unwrap_used)]

use std::sync::mpsc;

use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::groups::Id;
use super::*;

const TEST_DEADLINE: Duration = Duration::from_secs(60);

struct NoRequests;

impl RequestHandler for NoRequests {
    type Body = Body;

    async fn handle(&self, _request: Request<Body>, _peer: &Peer) -> Response<Body> {
        unreachable!("no request is sent")
    }
}

fn with_groups(groups: &[&'static dyn SupportedKxGroup]) -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { kx_groups: groups.to_vec(), ..default_provider() })
}

/// A server that supports no group for which the client sends a key at first, and the client.
fn server_and_client() -> (ServerConfig, ClientConnection) {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, mut roots) = (key.cert.der().clone(), RootCertStore::empty());
    roots.add(certificate.clone()).unwrap();
    let server = ServerConfig::builder_with_provider(with_groups(&[kx_group::SECP256R1]))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate],
            PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap(),
        )
        .unwrap();
    let client = ClientConfig::builder_with_provider(with_groups(&[kx_group::X25519, kx_group::SECP256R1]))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    (server, ClientConnection::new(Arc::new(client), name).unwrap())
}

/// What the client has to say.
fn said(client: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).unwrap();
    }
    bytes
}

async fn send(client: &mut ClientConnection, stream: &mut TcpStream) {
    stream.write_all(&said(client)).await.unwrap();
}

/// Reads until the client has something to say.
async fn receive(client: &mut ClientConnection, stream: &mut TcpStream) {
    while !client.wants_write() {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await.unwrap();
        let mut rest = &bytes[..count];
        assert!(count > 0, "the server has closed the connection");
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().unwrap();
        }
    }
}

/// A client that has been asked for another ClientHello, its connection, and the handshake.
async fn asked_again(line: &Handshakes) -> (ClientConnection, TcpStream, JoinHandle<io::Result<()>>) {
    let (server, mut client) = server_and_client();
    let listener = bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let port = SharedPort {
        tls: Arc::new(server),
        handshakes: line.clone(),
        handler: Arc::new(NoRequests),
        stop: CancellationToken::new(),
        bounds: Bounds::default(),
    };
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (accepted, from) = listener.accept().await.unwrap();
    let permit = Arc::new(ConnectionPermits::new(10, 10).take(from.ip()));
    let shaking = tokio::spawn(async move { port.handshake(accepted, &permit).await.map(drop) });
    send(&mut client, &mut stream).await;
    receive(&mut client, &mut stream).await;
    (client, stream, shaking)
}

async fn until(is: impl Fn() -> bool) {
    let waits = async {
        while !is() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_DEADLINE, waits).await.unwrap();
}

/// Keeps the only thread for handshakes busy until the sender is dropped, as connection `id`.
async fn hold(line: &Handshakes, id: Id) -> mpsc::SyncSender<()> {
    let ((release, held), (began, begins)) = (mpsc::sync_channel(1), oneshot::channel());
    let line = line.clone();
    let work = move || {
        began.send(()).unwrap();
        held.recv().unwrap_err();
    };
    let elsewhere = std::net::IpAddr::from([10, 0, 0, 1]).into();
    tokio::spawn(async move { line.handshake(elsewhere, id, work).await });
    begins.await.unwrap();
    release
}

/// The server worked on the key exchange and the signature of such a client on the threads that serve requests, as many
/// at a time as came.
#[tokio::test]
async fn a_second_hello_takes_a_turn() {
    let line = Handshakes::of(1, 1_000);
    let (mut client, mut stream, shaking) = asked_again(&line).await;
    let held = hold(&line, 0).await;
    send(&mut client, &mut stream).await;
    until(|| line.has_waiting()).await;
    drop(held);
    receive(&mut client, &mut stream).await;
    send(&mut client, &mut stream).await;
    let shaken = tokio::time::timeout(TEST_DEADLINE, shaking).await.expect("the handshake ends");
    shaken.unwrap().unwrap();
}

/// A client that sent it a byte at a time took a turn with each byte: 65,000 on one connection.
#[tokio::test]
async fn a_second_hello_in_too_many_pieces_ends_the_handshake() {
    let line = Handshakes::of(1, 1_000);
    let (mut client, mut stream, shaking) = asked_again(&line).await;
    stream.set_nodelay(true).unwrap();
    let hello = said(&mut client);
    for (id, byte) in (0..).zip(&hello[..RETRY_STEPS]) {
        let held = hold(&line, id).await;
        stream.write_all(&[*byte]).await.unwrap();
        until(|| line.has_waiting()).await;
        drop(held);
        until(|| !line.has_waiting()).await;
    }
    let shaken = tokio::time::timeout(TEST_DEADLINE, shaking).await.expect("the handshake ends");
    assert_eq!(shaken.unwrap().unwrap_err().to_string(), "the handshake comes in too many pieces");
}
