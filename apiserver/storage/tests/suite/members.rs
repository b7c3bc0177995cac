//! Several members of etcd, of which some do not answer.
//!
//! Once all of them were behind one balanced channel. It sent every third write to a member that was down, and the
//! write was refused with two others alive; and a member that accepted connections and never answered, as a paused
//! process does, held each read that fell to it up to the deadline, and each watch for twenty seconds.

use std::net::Ipv4Addr;
use std::sync::Arc;

use drydock_storage::backend::{BackendError, Revision};
use drydock_storage::etcd::{EtcdBackend, EtcdConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::etcd::Etcd;
use crate::harness::*;

/// A way to a server; while it is shut, connections are accepted and nothing passes.
struct Way {
    url: String,
    open: watch::Sender<bool>,
}

impl Way {
    async fn to(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let open = watch::Sender::new(true);
        let state = open.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let state = state.clone();
                tokio::spawn(async move {
                    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await.unwrap();
                    let ((from_client, to_client), (from_server, to_server)) =
                        (client.into_split(), server.into_split());
                    tokio::select! {
                        () = carry(from_client, to_server, state.clone()) => {}
                        () = carry(from_server, to_client, state) => {}
                    }
                });
            }
        });
        Self { url, open }
    }

    fn shut(&self) {
        self.open.send_replace(false);
    }

    fn open(&self) {
        self.open.send_replace(true);
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut open: watch::Receiver<bool>) {
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if open.wait_for(|open| *open).await.is_err() || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

async fn connect(servers: &[&str]) -> Store {
    let servers = servers.iter().map(|url| (*url).to_owned()).collect();
    let config = EtcdConfig { servers, prefix: "/suite".to_owned(), ..EtcdConfig::default() };
    Arc::new(EtcdBackend::connect(&config).await.expect("one of them answers"))
}

/// Two ways to one etcd, and a server that has begun with the first.
async fn two_ways(etcd: &Etcd) -> (Way, Way, Store) {
    let (one, other) = (Way::to(etcd.client_port()).await, Way::to(etcd.client_port()).await);
    // Whichever it tries first, it comes to the one that answers.
    other.shut();
    let store = connect(&[&one.url, &other.url]).await;
    other.open();
    (one, other, store)
}

/// Each server begins with any one of the members: of eight, some begin with the one that is down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_down_fails_no_write() {
    let etcd = Etcd::start();
    let (down, url) = ("http://127.0.0.1:1", format!("http://127.0.0.1:{}", etcd.client_port()));
    etcd.backend("/suite").await;
    for server in 0..8 {
        let store = connect(&[down, &url, down]).await;
        let start = store.current_revision().await.unwrap();
        let mut watch = Watch::start(&store, "/", start).await;
        for n in 0..4 {
            let at = create(&store, &format!("/{server}/{n}"), "1").await;
            assert_eq!(watch.event().await.revision, at);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_falls_silent_is_left_and_its_watches_go_on() {
    let etcd = Etcd::start();
    etcd.backend("/suite").await;
    let (one, other, store) = two_ways(&etcd).await;
    let start = store.current_revision().await.unwrap();
    let mut watch = Watch::start(&store, "/", start).await;
    let first = create(&store, "/a", "1").await;
    assert_eq!(watch.event().await.revision, first);

    one.shut();
    assert_eq!(text(&store, "/a", None).await.as_deref(), Some("1"));
    let second = update(&store, "/a", first, "2").await;
    assert_eq!(watch.event().await.revision, second);
    assert!(watch.until_progress(&store, second).await.is_empty());

    other.shut();
    one.open();
    let third = match store.current_revision().await {
        Ok(current) => update(&store, "/a", Revision(second.0.min(current.0)), "3").await,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(watch.event().await.revision, third);
}

/// A write that a member has taken and not answered may have been made: it is not sent to another one, where it would
/// find itself and be refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_is_not_answered_is_not_sent_again() {
    let etcd = Etcd::start();
    etcd.backend("/suite").await;
    let (one, _other, store) = two_ways(&etcd).await;
    create(&store, "/warm", "1").await;
    one.shut();
    let write = drydock_storage::backend::Write {
        key: "/a".to_owned(),
        expected: None,
        value: value("1"),
        guard: None,
    };
    let outcome = store.write(write).await;
    assert!(matches!(outcome, Err(BackendError::Unavailable(_))), "{outcome:?}");
    // The next one goes where there is an answer, and nobody else has written.
    create(&store, "/b", "1").await;
    one.open();
    let found = keys(&store, "/", None).await;
    assert!(found == ["/b", "/warm"] || found == ["/a", "/b", "/warm"], "{found:?}");
}
