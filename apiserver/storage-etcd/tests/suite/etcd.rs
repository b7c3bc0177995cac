//! What only etcd has: servers that restart, several replicas, prefixes, settings and TLS.

use std::path::PathBuf;
use std::sync::Arc;

use drydock_storage::backend::{BackendError, CompactionTurn, CompareAndSwap, Revision, WatchItem};
use drydock_storage::testing::backend_suite::harness::*;
use drydock_storage_etcd::{EtcdBackend, EtcdConfig};
use tempfile::TempDir;

use drydock_storage_etcd::testing::TestEtcd;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_goes_on_where_it_was_when_etcd_comes_back() {
    let mut etcd = TestEtcd::start();
    let store = etcd.backend("/suite").await;
    let start = store.current_revision().await.unwrap();
    let mut watch = Watch::start(&store, "/", start).await;
    let mut expected = Vec::new();
    for round in 0..3 {
        for n in 0..5 {
            expected.push(create(&store, &format!("/{round}/{n}"), "1").await);
        }
        etcd.restart();
        // A read is retried until etcd answers; a write would not be.
        store.current_revision().await.unwrap();
        expected.push(create(&store, &format!("/{round}/after"), "1").await);
    }
    let seen: Vec<_> = watch.events(expected.len()).await.iter().map(|event| event.revision).collect();
    assert_eq!(seen, expected);
    let last = *expected.last().unwrap();
    assert!(watch.until_progress(&store, last).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_fails_when_what_it_missed_was_compacted() {
    let mut etcd = TestEtcd::start();
    let store = etcd.backend("/suite").await;
    let first = create(&store, "/a", "1").await;
    let mut watch = Watch::start(&store, "/", Revision(first.0 - 1)).await;
    watch.event().await;
    let proxy = etcd.backend("/suite").await;
    etcd.kill();
    // Only a running etcd can be compacted: another handle compacts it before the watch is opened again.
    etcd.restart();
    let second = retry(&proxy, "/a", first, "2").await;
    let third = update(&proxy, "/a", second, "3").await;
    proxy.compact(third).await.unwrap();
    // Either the watch was opened in time to see everything, or it fails; it must not skip events.
    let mut seen = Vec::new();
    loop {
        match watch.item().await {
            WatchItem::Events(events) => seen.extend(events.into_iter().map(|event| event.revision)),
            WatchItem::Failed(BackendError::Compacted { oldest, .. }) => break assert_eq!(oldest, third),
            WatchItem::Failed(other) => panic!("{other:?}"),
            WatchItem::Progress(_) => {}
        }
        if seen.last() == Some(&third) {
            break;
        }
    }
    assert!(seen.is_empty() || seen == [second, third], "{seen:?}");
}

/// Makes a write whose outcome may have been lost with the connection.
async fn retry(store: &Store, key: &str, expected: Revision, to: &str) -> Revision {
    store.current_revision().await.unwrap();
    update(store, key, expected, to).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_etcd_is_unavailable_and_not_waited_for_without_end() {
    let mut etcd = TestEtcd::start();
    let store = etcd.backend("/suite").await;
    create(&store, "/a", "1").await;
    etcd.kill();
    let write = CompareAndSwap {
        key: "/b".to_owned(),
        expected: None,
        value: value("1"),
        guard: None,
        priority: Default::default(),
    };
    let (read, written) = tokio::join!(store.get("/a", None), store.write(write));
    assert!(matches!(read, Err(BackendError::Unavailable(_))), "{read:?}");
    assert!(matches!(written, Err(BackendError::Unavailable(_))), "{written:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installations_on_one_etcd_do_not_see_each_other() {
    let etcd = TestEtcd::start();
    let one = etcd.backend("/one").await;
    let other = etcd.backend("/one-more").await;
    let start = one.current_revision().await.unwrap();
    let mut watch = Watch::start(&one, "", start).await;
    create(&other, "/a", "other").await;
    let mine = create(&one, "/a", "mine").await;
    assert_eq!(text(&one, "/a", None).await.as_deref(), Some("mine"));
    assert_eq!(text(&other, "/a", None).await.as_deref(), Some("other"));
    assert_eq!(keys(&one, "", None).await, ["/a"]);
    assert_eq!(watch.event().await.revision, mine);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_replicas_one_compacts_and_the_other_takes_over() {
    let etcd = TestEtcd::start();
    let (one, other) = (etcd.backend("/suite").await, etcd.backend("/suite").await);
    let first = create(&one, "/a", "1").await;
    let mut turns = [CompactionTurn::default(), CompactionTurn::default()];
    turns[0] = one.compaction_turn(turns[0]).await.unwrap();
    turns[1] = other.compaction_turn(turns[1]).await.unwrap();
    assert_eq!((turns[0].time, turns[1].time), (1, 1), "the other takes note of the first one's turn");
    let second = update(&one, "/a", first, "2").await;
    turns[0] = one.compaction_turn(turns[0]).await.unwrap();
    // The other replica has seen less of the protocol's time: it may not compact, however old its revision is.
    turns[1] = other.compaction_turn(turns[1]).await.unwrap();
    assert_eq!(text(&other, "/a", Some(second)).await.as_deref(), Some("2"));
    // The first replica is gone; the other one's next turn compacts.
    update(&one, "/a", second, "3").await;
    turns[1] = other.compaction_turn(turns[1]).await.unwrap();
    assert_eq!(turns[1].time, 3);
    for error in errors_at(&other, first).await {
        assert!(matches!(error, BackendError::Compacted { .. }), "{error:?}");
    }
    assert_eq!(text(&other, "/a", Some(Revision(second.0 + 2))).await.as_deref(), Some("3"));
}

#[tokio::test]
async fn wrong_settings_are_refused() {
    let refused = async |config: EtcdConfig| match EtcdBackend::connect(&config).await {
        Ok(_) => panic!("{config:?} was accepted"),
        Err(error) => error.to_string(),
    };
    assert!(refused(EtcdConfig::default()).await.contains("no etcd server"));
    let servers = vec!["https://127.0.0.1:1".to_owned()];
    let config =
        EtcdConfig { servers: servers.clone(), ca_file: Some("/no/such/file".into()), ..Default::default() };
    assert!(refused(config).await.contains("/no/such/file"));
    let config = EtcdConfig { servers, cert_file: Some("/no/such/file".into()), ..Default::default() };
    assert!(refused(config).await.contains("needs its key"));
    let servers = vec!["http://not a url".to_owned()];
    refused(EtcdConfig { servers, ..Default::default() }).await;
}

/// A CA, and the certificates that it signed for a server and a client.
pub struct Certificates(TempDir);

impl Certificates {
    pub fn new() -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new([]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        made.write("ca.crt", &params.self_signed(&key).unwrap().pem());
        let authority = rcgen::Issuer::new(params, key);
        made.sign(&authority, "server", rcgen::ExtendedKeyUsagePurpose::ServerAuth);
        made.sign(&authority, "client", rcgen::ExtendedKeyUsagePurpose::ClientAuth);
        made
    }

    fn sign<S: rcgen::SigningKey>(
        &self,
        authority: &rcgen::Issuer<'_, S>,
        name: &str,
        usage: rcgen::ExtendedKeyUsagePurpose,
    ) {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage, rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        self.write(&format!("{name}.crt"), &params.signed_by(&key, authority).unwrap().pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Starts an etcd with TLS that accepts only clients with a certificate of `certificates`.
fn start_with(certificates: &Certificates) -> TestEtcd {
    let file = |name: &str| certificates.file(name).into_os_string().into_string().unwrap();
    let (ca, cert, key) = (file("ca.crt"), file("server.crt"), file("server.key"));
    let tls = ["--client-cert-auth", "--trusted-ca-file", &ca, "--cert-file", &cert, "--key-file", &key];
    TestEtcd::start_with("https", &tls)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_is_reached_with_tls_and_a_client_certificate_and_not_without() {
    let certificates = Certificates::new();
    let etcd = start_with(&certificates);
    let servers = vec![format!("https://127.0.0.1:{}", etcd.client_port())];
    let config = EtcdConfig {
        servers,
        prefix: "/suite".to_owned(),
        ca_file: Some(certificates.file("ca.crt")),
        cert_file: Some(certificates.file("client.crt")),
        key_file: Some(certificates.file("client.key")),
        ..EtcdConfig::default()
    };
    let store: Store = Arc::new(EtcdBackend::connect(&config).await.unwrap());
    let start = store.current_revision().await.unwrap();
    let mut watch = Watch::start(&store, "/", start).await;
    let at = create(&store, "/a", "1").await;
    assert_eq!(watch.event().await.revision, at);
    let others = Certificates::new();
    let other_ca = EtcdConfig { ca_file: Some(others.file("ca.crt")), ..config.clone() };
    let no_certificate = EtcdConfig { cert_file: None, key_file: None, ..config.clone() };
    let (other_ca, no_certificate) =
        tokio::join!(EtcdBackend::connect(&other_ca), EtcdBackend::connect(&no_certificate));
    // Both errors say that etcd did not answer in time, and no more.
    let (other_ca, no_certificate) =
        (other_ca.err().unwrap().to_string(), no_certificate.err().unwrap().to_string());
    assert!(
        other_ca.contains("within 10 s: ") && other_ca.contains("invalid peer certificate"),
        "{other_ca}"
    );
    // A client without a certificate may find the connection closed before it learns why (RFC 8446, 4.4.2.4).
    assert!(no_certificate.contains("within 10 s: "), "{no_certificate}");
    let ca_file = Some(certificates.file("client.key"));
    let error = EtcdBackend::connect(&EtcdConfig { ca_file, ..config }).await.err().unwrap().to_string();
    assert!(error.contains("client.key: has no CERTIFICATE in PEM"), "{error}");
}
