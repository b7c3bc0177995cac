//! Probes are answered whatever else happens: a probe that fails has the pod restarted, the APIService marked
//! unavailable, and the deletion of every namespace of the cluster stopped.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fixture::{Port, Settings, code};
use crate::fixture::{GADGETS, gadget};

const PROBES: [&str; 3] = ["/livez", "/readyz", "/healthz"];

/// One client that does not read its list had every probe answered 429, and a host that did not answer reviews 504.
#[tokio::test]
async fn probes_are_answered_while_all_places_are_taken_and_the_host_is_silent() {
    let port = Port::open(Settings { in_flight: 1, ..Settings::default() }).await;
    for number in 0..12 {
        let spec = serde_json::json!({"spec": {"color": "x".repeat(1_000_000)}});
        let body = gadget(&format!("g{number}"), spec).to_string();
        assert_eq!(code(&port.send_body(&format!("POST {GADGETS}"), &body).await), 201);
    }
    let mut lazy = port.connect(None, "http/1.1").await;
    lazy.write_all(format!("GET {GADGETS} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
    lazy.read_exact(&mut [0; 16]).await.unwrap();
    port.host_answers.send(false).unwrap();
    for path in PROBES {
        for query in ["", "?verbose", "?exclude=ping&verbose=1", "?timeout=nonsense", "?timeout=1ms"] {
            for header in [("accept", "*/*"), ("authorization", "Bearer bad")] {
                let answer = port.send(None, &format!("GET {path}{query}"), &[header]).await;
                assert_eq!(code(&answer), 200, "{path}{query}: {answer}");
            }
        }
    }
    drop(lazy);
}

#[tokio::test]
async fn what_is_not_exactly_a_probe_is_authenticated_and_authorized() {
    let port = Port::open(Settings { rule: |_| false, ..Settings::default() }).await;
    for path in PROBES {
        for other in [format!("GET {path}/ping"), format!("GET {path}/"), format!("POST {path}")] {
            let answer = port.send(None, &other, &[("authorization", "Bearer bad")]).await;
            assert_eq!(code(&answer), 401, "{other}");
        }
        assert_eq!(code(&port.send(None, &format!("GET {path}x"), &[]).await), 403, "{path}");
    }
}

/// The path of a single check shows why it fails: where etcd is, and what is wrong with it. Every client could once
/// read that.
#[tokio::test]
async fn a_single_check_is_told_to_users_who_may_read_its_path_alone() {
    let single = ["/livez/ping", "/readyz/storage-writes", "/healthz/ping", "/readyz/", "/readyz/unheard-of"];
    let port = Port::open(Settings { rule: |_| false, ..Settings::default() }).await;
    for path in single {
        assert_eq!(code(&port.send(None, &format!("GET {path}"), &[]).await), 403, "{path}");
    }
    for path in PROBES {
        assert_eq!(code(&port.send(None, &format!("HEAD {path}"), &[]).await), 200, "{path}");
    }
    let may = |spec: &serde_json::Value| spec["nonResourceAttributes"]["path"] == "/readyz/storage-writes";
    let port = Port::open(Settings { rule: may, ..Settings::default() }).await;
    assert_eq!(code(&port.send(None, "GET /readyz/storage-writes", &[]).await), 200);
}
