//! A host that goes away, in the ways in which hosts do, and comes back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use drydock_serving::host::{self, KeepAlive};
use futures::{AsyncBufReadExt, StreamExt};
use http::Request;
use kube::Client;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::fixture::{Port, Settings, client_by};

/// Far more than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

/// What a connection to the host leads to. A change to `Cut` or `Silent` concerns open connections too.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    To(SocketAddr),
    /// Connections end.
    Cut,
    /// Connections stay, and nothing comes through: the host's machine is gone.
    Silent,
}

/// A way to hosts, by one address.
struct Link {
    address: SocketAddr,
    way: watch::Sender<Way>,
}

impl Link {
    async fn to(port: &Port) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (way, seen) = watch::channel(Way::To(port.address));
        tokio::spawn(async move {
            loop {
                tokio::spawn(pass(accepted(&listener).await, seen.clone()));
            }
        });
        Self { address, way }
    }

    /// Several hosts have no certificate in common.
    async fn client(&self, keep_alive: KeepAlive) -> Client {
        let cluster =
            json!({"server": format!("https://{}", self.address), "insecure-skip-tls-verify": true});
        client_by(keep_alive, cluster, json!({})).await
    }
}

/// Waits for the next connection. One that fails says nothing of the next: its client has gone, or no file descriptor is left for
/// now.
async fn accepted(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(_) => {
                let _ = tokio::time::timeout(Duration::from_millis(10), std::future::pending::<()>()).await;
            }
        }
    }
}

async fn pass(mut stream: TcpStream, mut way: watch::Receiver<Way>) {
    let Way::To(address) = *way.borrow_and_update() else { return };
    let mut host = TcpStream::connect(address).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut stream, &mut host) => {}
        _ = way.wait_for(|way| !matches!(way, Way::To(_))) => {}
    }
    let is_silent = *way.borrow() == Way::Silent;
    if is_silent {
        std::future::pending::<()>().await;
    }
}

async fn get(client: &Client, path: &str) -> kube::Result<String> {
    let request = Request::get(path).body(Vec::new()).unwrap();
    tokio::time::timeout(LIMIT, client.request_text(request)).await.expect("answered, or known not to be")
}

/// Opens a watch, and returns what ends with it. On a machine that stands still for a moment, a host may be lost that is
/// there; it is asked again.
async fn watch(client: &Client) -> impl Future<Output = ()> + use<> {
    let path = "/apis/test.io/v1/namespaces/ns/gadgets?watch=true";
    let opened = async {
        loop {
            if let Ok(watch) = client.request_stream(Request::get(path).body(Vec::new()).unwrap()).await {
                return watch;
            }
        }
    };
    let watch = tokio::time::timeout(LIMIT, opened).await.expect("a watch opens");
    async move {
        let mut events = Box::pin(watch.lines());
        let ended = async { while let Some(Ok(_)) = events.next().await {} };
        tokio::time::timeout(LIMIT, ended).await.expect("the watch ends");
    }
}

/// GOAWAY: what is under way may end, and nothing new is begun on the connection.
#[tokio::test]
async fn a_host_that_ends_in_order_is_asked_again_where_it_is_then() {
    let (first, second) = (Port::open(Settings::default()).await, Port::open(Settings::default()).await);
    let link = Link::to(&first).await;
    let client = link.client(KeepAlive::default()).await;
    let watching = watch(&client).await;
    link.way.send(Way::To(second.address)).unwrap();
    first.stop.cancel();
    watching.await;
    first.serving.await.unwrap();
    assert_eq!(get(&client, "/livez").await.unwrap(), "ok");
}

#[tokio::test]
async fn a_connection_that_is_lost_is_made_again() {
    let port = Port::open(Settings::default()).await;
    let link = Link::to(&port).await;
    let client = link.client(KeepAlive::default()).await;
    let watching = watch(&client).await;
    link.way.send(Way::Cut).unwrap();
    watching.await;
    assert!(get(&client, "/livez").await.is_err());
    link.way.send(Way::To(port.address)).unwrap();
    assert_eq!(get(&client, "/livez").await.unwrap(), "ok");
}

/// Over HTTP/1 an answer was waited for without end: the write was never tried again, and what it was for stood still.
#[tokio::test]
async fn a_host_whose_machine_is_gone_is_not_waited_for() {
    let port = Port::open(Settings::default()).await;
    let link = Link::to(&port).await;
    let keep_alive = KeepAlive { interval: Duration::from_millis(100), timeout: Duration::from_secs(1) };
    let client = link.client(keep_alive).await;
    let watching = watch(&client).await;
    link.way.send(Way::Silent).unwrap();
    assert!(get(&client, "/livez").await.is_err());
    watching.await;
    link.way.send(Way::To(port.address)).unwrap();
    let answered = async { while get(&client, "/livez").await.is_err() {} };
    tokio::time::timeout(LIMIT, answered).await.expect("the host is back");
}

/// Answers every request in the same way, over HTTP/1, and counts them.
async fn refusing(answer: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::<AtomicUsize>::default();
    let counted = requests.clone();
    tokio::spawn(async move {
        loop {
            let mut stream = accepted(&listener).await;
            // To the end of the object that is sent.
            let mut request = vec![0; 1 << 16];
            while !request.contains(&b'}') {
                assert!(stream.read(&mut request).await.unwrap() > 0);
            }
            counted.fetch_add(1, SeqCst);
            let head = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
        }
    });
    (address, requests)
}

/// If it were sent again, a create that had been made would fail as if somebody else had made it.
#[tokio::test]
async fn a_write_of_unknown_outcome_is_sent_once() {
    let token = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"},
    });
    let plugin = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "echo", "args": [token.to_string()],
        "interactiveMode": "Never",
    });
    for answer in ["429 Too Many Requests", "503 Service Unavailable", "504 Gateway Timeout"] {
        for user in [json!({}), json!({"exec": plugin})] {
            let (address, requests) = refusing(answer).await;
            let cluster = json!({"server": format!("http://{address}")});
            let client = client_by(KeepAlive::default(), cluster, user.clone()).await;
            let create = Request::post("/api/v1/namespaces/ns/configmaps").body(b"{}".to_vec()).unwrap();
            assert!(client.request_text(create).await.is_err(), "{answer} {user}");
            assert_eq!(requests.load(SeqCst), 1, "{answer} {user}");
        }
    }
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_is_named_with_its_flag() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("absent");
    let said = format!("{:#}", host::client("--some-kubeconfig", Some(&file)).await.err().unwrap());
    assert!(said.starts_with(&format!("--some-kubeconfig: {}: ", file.display())), "{said}");
}
