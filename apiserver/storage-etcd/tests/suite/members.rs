//! Several members of etcd, some of which do not answer.
//!
//! Regression: all members were behind one balanced channel. It sent every third write to a member that was down, and
//! the write failed although two others were alive. A member that accepted connections and never answered, as a
//! paused process does, held each read that was sent to it up to the deadline, and each watch for twenty seconds.

use std::sync::Arc;
use std::time::Duration;

use drydock_storage::backend::{BackendError, Revision, WatchItem};
use drydock_storage::testing::backend_suite::harness::*;
use drydock_storage_etcd::{EtcdBackend, EtcdConfig};

use crate::proxy::Proxy;
use drydock_storage_etcd::testing::TestEtcd;

async fn connect(servers: &[&str]) -> Store {
    let servers = servers.iter().map(|url| (*url).to_owned()).collect();
    let config = EtcdConfig { servers, prefix: "/suite".to_owned(), ..EtcdConfig::default() };
    Arc::new(EtcdBackend::connect(&config).await.expect("one of them answers"))
}

/// Returns two proxies to one running etcd, and a backend that uses the first one.
async fn two_proxies(etcd: &TestEtcd) -> (Proxy, Proxy, Store) {
    etcd.backend("/suite").await;
    let (one, other) = (Proxy::to(etcd.client_port()).await, Proxy::to(etcd.client_port()).await);
    // Whichever it tries first, it ends with the one that answers.
    other.shut();
    let store = connect(&[&one.url, &other.url]).await;
    other.open();
    (one, other, store)
}

/// Each backend begins with a random member: of eight, some begin with the one that is down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_down_fails_no_write() {
    let etcd = TestEtcd::start();
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

/// Regression: /readyz?verbose reported that all was well while every write failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_says_that_etcd_is_gone_until_it_is_back() {
    let mut etcd = TestEtcd::start();
    let store = etcd.backend("/suite").await;
    assert_eq!(store.refuses_writes(), None);
    etcd.kill();
    until_it_says(&store, |why| why.is_some_and(|why| why.contains("etcd cannot be reached"))).await;
    etcd.restart();
    until_it_says(&store, |why| why.is_none()).await;
    create(&store, "/a", "1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_falls_silent_is_left_and_its_watches_go_on() {
    let etcd = TestEtcd::start();
    let (one, other, store) = two_proxies(&etcd).await;
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

/// A write that a member has accepted and not answered may have been carried out. It is not sent to another member,
/// where it would conflict with itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_is_not_answered_is_not_sent_again() {
    let etcd = TestEtcd::start();
    let (one, _other, store) = two_proxies(&etcd).await;
    create(&store, "/warm", "1").await;
    one.shut();
    let write = drydock_storage::backend::CompareAndSwap {
        key: "/a".to_owned(),
        expected: None,
        value: value("1"),
        guard: None,
        priority: Default::default(),
    };
    let outcome = store.write(write).await;
    assert!(matches!(outcome, Err(BackendError::Unavailable(_))), "{outcome:?}");
    // The next write goes to a member that answers; no write was made twice.
    create(&store, "/b", "1").await;
    one.open();
    let found = keys(&store, "/", None).await;
    assert!(found == ["/b", "/warm"] || found == ["/a", "/b", "/warm"], "{found:?}");
}

/// Regression: the members got 2, 4 and 4 of the 10 s, one after the other, and the response in flight was discarded:
/// if each response took 5 s, the read failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_takes_long_is_waited_for_while_another_member_is_asked() {
    let etcd = TestEtcd::start();
    let (one, other, store) = two_proxies(&etcd).await;
    create(&store, "/a", "1").await;
    for proxy in [&one, &other] {
        proxy.answer_after(Duration::from_secs(5));
    }
    assert_eq!(text(&store, "/a", None).await.as_deref(), Some("1"));
}

/// Regression: a watch that was catching up got no progress and counted as dead. Its stream was closed after two
/// seconds, and the next one began to catch up again; even with a single member, where there is no other to switch
/// to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_is_told_no_progress_is_not_torn_down() {
    let etcd = TestEtcd::start();
    etcd.backend("/suite").await;
    let proxies = [Proxy::to(etcd.client_port()).await, Proxy::to(etcd.client_port()).await];
    for servers in [1, 2] {
        let store =
            connect(&proxies[..servers].iter().map(|proxy| proxy.url.as_str()).collect::<Vec<_>>()).await;
        let start = create(&store, &format!("/w/{servers}"), "1").await;
        let mut watch = Watch::start(&store, "/w/", Revision(start.0 - 1)).await;
        assert_eq!(watch.event().await.revision, start);
        create(&store, &format!("/elsewhere/{servers}"), "1").await;
        let connections = || proxies.iter().map(Proxy::connections).sum::<usize>();
        let before = connections();
        proxies.iter().for_each(Proxy::mute);
        store.request_progress().await.unwrap();
        // Progress is requested ten times a second.
        tokio::select! {
            () = proxies[0].until_muted(50) => {}
            () = proxies[1].until_muted(50) => {}
        }
        assert_eq!(connections(), before, "no stream was opened beside the first");
        let next = create(&store, &format!("/w/{servers}/next"), "1").await;
        assert_eq!(watch.event().await.revision, next);
        proxies.iter().for_each(Proxy::unmute);
        assert!(watch.until_progress(&store, next).await.is_empty());
    }
}

/// Regression: etcd reports progress unasked only every ten minutes, and history is kept for five. A watch of keys
/// that were not written continued from before the compaction when its stream broke, and failed, and with it
/// everything that it fed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_of_keys_that_nobody_writes_is_not_overtaken_by_compaction() {
    let mut etcd = TestEtcd::start();
    let store = etcd.backend("/suite").await;
    let start = create(&store, "/w/a", "1").await;
    let mut watch = Watch::start(&store, "/w/", start).await;
    let first = create(&store, "/elsewhere", "1").await;
    let last = update(&store, "/elsewhere", first, "2").await;
    loop {
        match watch.item().await {
            WatchItem::Progress(upto) if upto >= last => break,
            WatchItem::Progress(_) => {}
            other => panic!("{other:?}"),
        }
    }
    store.compact(last).await.unwrap();
    etcd.restart();
    store.current_revision().await.unwrap();
    let next = update(&store, "/w/a", start, "2").await;
    assert_eq!(watch.event().await.revision, next);
}
