//! The limits of a request, and the answers to requests that exceed them.

use drydock_serving::clock::testing::pass;
use drydock_storage_sqlite::SqliteOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::fixture::{Port, Settings, code, send_body_on};
use crate::fixture::GADGETS;

/// A gadget of about so many bytes.
fn sized(number: usize, bytes: usize) -> String {
    let spec = serde_json::json!({"spec": {"color": "x".repeat(bytes)}});
    crate::fixture::gadget(&format!("g{number}"), spec).to_string()
}

#[tokio::test]
async fn a_timeout_that_is_none_is_400() {
    let port = Port::open(Settings::default()).await;
    for (timeout, expected) in [("10s", 200), ("0", 200), ("-1s", 200), ("forever", 400), ("%00", 400)] {
        let answer = port.send(None, &format!("GET {GADGETS}?timeout={timeout}"), &[]).await;
        assert_eq!(code(&answer), expected, "{timeout}: {answer}");
    }
}

/// Regression: such a name was sent to the host in a review for each request, because answers to very long
/// questions are not remembered.
#[tokio::test]
async fn a_path_that_is_too_long_is_404_before_the_host_is_asked() {
    let port = Port::open(Settings::default()).await;
    let long = format!("{GADGETS}/{}", "x".repeat(3_000));
    for method in ["GET", "DELETE", "PATCH", "PUT"] {
        for headers in [&[][..], &[("authorization", "Bearer t")]] {
            let answer = port.send(None, &format!("{method} {long}"), headers).await;
            let told = answer.contains("the server could not find the requested resource");
            assert!(code(&answer) == 404 && told && answer.len() < 1_000, "{answer}");
        }
    }
    assert_eq!((port.asked().len(), port.tokens()), (0, 0));
}

/// A client that asks for a large list and does not read it holds its seats, and the list, until its time is up.
#[tokio::test]
async fn an_answer_that_is_not_read_is_let_go_at_its_deadline() {
    let port = Port::open(Settings { in_flight: 1, ..Settings::default() }).await;
    for i in 0..12 {
        let answer = port.send_body(&format!("POST {GADGETS}"), &sized(i, 1_000_000)).await;
        assert_eq!(code(&answer), 201, "{answer}");
    }
    let mut lazy = port.connect(None, "http/1.1").await;
    lazy.write_all(format!("GET {GADGETS} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
    let mut first = [0; 16];
    lazy.read_exact(&mut first).await.unwrap();
    let get = format!("GET {GADGETS}/none?timeout=1s");
    let refused = port.send(None, &get, &[]).await;
    assert_eq!(code(&refused), 429, "{refused}");
    assert!(refused.contains("retry-after: 1") && refused.contains("content-type: text/plain"), "{refused}");
    assert!(refused.contains("Too many requests, please try again later."), "{refused}");
    pass(Settings::default().request_timeout).await;
    while code(&port.send(None, &get, &[]).await) == 429 {
        tokio::task::yield_now().await;
    }
    drop(lazy);
}

#[tokio::test]
async fn the_metrics_of_dashboards_are_there() {
    let port = Port::open(Settings { in_flight: 7, ..Settings::default() }).await;
    port.send(None, &format!("GET {GADGETS}"), &[]).await;
    // The body never comes.
    let late = port.send(None, &format!("POST {GADGETS}?timeout=10ms"), &[("content-length", "10")]).await;
    let why = "Timeout: request did not complete within requested timeout - context deadline exceeded";
    assert!(code(&late) == 504 && late.contains(why), "{late}");
    let metrics = port.send(None, "GET /metrics", &[]).await;
    let of = r#"verb="LIST",group="test.io",version="v1",resource="gadgets",subresource="",scope="namespace",component="apiserver""#;
    for line in [
        format!(r#"apiserver_request_total{{{of},dry_run="",code="200"}} 1"#),
        format!(r#"apiserver_request_duration_seconds_count{{{of},dry_run=""}} 1"#),
        format!("apiserver_request_sli_duration_seconds_count{{{of}}} 1"),
        format!("apiserver_response_sizes_count{{{of}}} 1"),
        r#"apiserver_current_inflight_requests{request_kind="readOnly"} 1"#.to_owned(),
        r#"apiserver_current_inflight_requests{request_kind="mutating"} 0"#.to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
    let ended = metrics.lines().find(|line| line.starts_with("apiserver_request_terminations_total"));
    assert!(ended.is_some_and(|line| line.contains(r#"code="504""#)), "{metrics}");
}

/// How many writes of gadgets were refused, as /metrics has it.
async fn refused(port: &Port, reason: &str) -> usize {
    let metrics = port.send(None, "GET /metrics", &[]).await;
    let of = format!(
        r#"drydock_storage_refused_writes_total{{group="test.io",resource="gadgets",reason="{reason}"}} "#
    );
    let line = metrics.lines().find_map(|line| line.strip_prefix(of.as_str()));
    line.unwrap_or_else(|| panic!("{of} is not in {metrics}")).parse().unwrap()
}

/// The queue is held full by not letting the writer begin: an administrator's sqlite3 has the write lock. The writer waits
/// for some seconds, so all connections are there before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_beyond_the_queue_are_429_and_counted() {
    let store = SqliteOptions { queue: 1, ..SqliteOptions::default() };
    let port = Port::open(Settings { store, ..Settings::default() }).await;
    let mut connections = Vec::new();
    for _ in 0..8 {
        connections.push(port.connect(None, "http/1.1").await);
    }
    let reader = port.connect(None, "http/1.1").await;
    let admin = rusqlite::Connection::open(port.store()).unwrap();
    admin.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut writes = JoinSet::new();
    for (number, stream) in connections.into_iter().enumerate() {
        writes
            .spawn(async move { send_body_on(stream, &format!("POST {GADGETS}"), &sized(number, 1)).await });
    }
    let first = writes.join_next().await.unwrap().unwrap();
    assert_eq!(code(&first), 429, "{first}");
    assert!(first.contains("retry-after: 1") && first.contains("too many writes are waiting"), "{first}");
    assert!(first.contains(r#""reason":"TooManyRequests""#), "{first}");
    assert_eq!(code(&send_body_on(reader, &format!("GET {GADGETS}"), "").await), 200, "reads go on");
    admin.execute_batch("ROLLBACK").unwrap();
    let (mut busy, mut made) = (1, 0);
    while let Some(answer) = writes.join_next().await {
        match code(&answer.unwrap()) {
            429 => busy += 1,
            201 => made += 1,
            other => panic!("{other}"),
        }
    }
    assert!(made > 0 && busy + made == 8, "{busy} and {made}");
    assert_eq!((refused(&port, "queue-full").await, refused(&port, "no-space").await), (busy, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_without_space_are_507_and_counted_and_reads_go_on() {
    let store = SqliteOptions { max_file: Some(1 << 20), ..SqliteOptions::default() };
    let port = Port::open(Settings { store, ..Settings::default() }).await;
    let mut made = 0;
    let full = loop {
        let answer = port.send_body(&format!("POST {GADGETS}"), &sized(made, 100_000)).await;
        match code(&answer) {
            201 => made += 1,
            _ => break answer,
        }
    };
    assert_eq!(code(&full), 507, "{full}");
    assert!(full.contains(r#""reason":"InsufficientStorage""#) && full.contains("--data-dir"), "{full}");
    assert_eq!((refused(&port, "queue-full").await, refused(&port, "no-space").await), (0, 1));
    for number in 0..=made {
        let answer = port.send(None, &format!("GET {GADGETS}/g{number}"), &[]).await;
        assert_eq!(code(&answer), if number < made { 200 } else { 404 }, "{number}");
    }
    let ready = port.send(None, "GET /readyz?verbose", &[]).await;
    assert!(code(&ready) == 200 && ready.contains("[!]storage-writes: "), "{ready}");
    let excluded = port.send(None, "GET /readyz?verbose&exclude=storage-writes", &[]).await;
    assert!(excluded.contains("[+]storage-writes excluded: ok"), "{excluded}");
}

/// Regression: a user who filled the store kept everybody from removing anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_at_its_quota_takes_no_more_objects_and_every_delete() {
    let store = SqliteOptions { quota: Some(2 << 20), ..SqliteOptions::default() };
    let port = Port::open(Settings { store, ..Settings::default() }).await;
    let mut made = 0;
    let full = loop {
        let answer = port.send_body(&format!("POST {GADGETS}"), &sized(made, 100_000)).await;
        match code(&answer) {
            201 => made += 1,
            _ => break answer,
        }
    };
    assert_eq!(code(&full), 507, "{full}");
    assert!(full.contains("--quota-backend-bytes is 2097152: delete objects"), "{full}");
    let ready = port.send(None, "GET /readyz?verbose", &[]).await;
    assert!(code(&ready) == 200 && ready.contains("[!]storage-writes: "), "{ready}");
    for number in 0..made {
        let answer = port.send(None, &format!("DELETE {GADGETS}/g{number}"), &[]).await;
        assert_eq!(code(&answer), 200, "{answer}");
    }
}

#[tokio::test]
async fn the_caches_tell_how_full_they_are_and_how_far_behind() {
    let port = Port::open(Settings::default()).await;
    for number in 0..3 {
        let answer = port.send_body(&format!("POST {GADGETS}"), &sized(number, 1)).await;
        assert_eq!(code(&answer), 201, "{answer}");
    }
    // A consistent read: the cache has taken them in.
    assert_eq!(code(&port.send(None, &format!("GET {GADGETS}"), &[]).await), 200);
    let metrics = port.send(None, "GET /metrics", &[]).await;
    let of = r#"group="test.io",resource="gadgets""#;
    for line in [
        format!("apiserver_resource_objects{{{of}}} 3"),
        format!("apiserver_watch_cache_resource_version{{{of}}} 4"),
        format!("apiserver_watch_cache_initializations_total{{{of}}} 1"),
        format!("apiserver_terminated_watchers_total{{{of}}} 0"),
        format!("drydock_watch_cache_ring_events{{{of}}} 3"),
        format!("drydock_watch_cache_lag_revisions{{{of}}} 0"),
        r#"apiserver_resource_objects{group="test.io",resource="widgets"} 0"#.to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
    let bytes = metrics.lines().find_map(|line| {
        line.strip_prefix(&format!("drydock_watch_cache_ring_bytes{{{of}}} ")).map(str::to_owned)
    });
    assert!(bytes.is_some_and(|bytes| bytes != "0"), "{metrics}");
}
