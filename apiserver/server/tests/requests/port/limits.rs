//! What a request may take, and what is told of it.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fixture::{Port, Settings, code};
use crate::fixture::GADGETS;

#[tokio::test]
async fn a_timeout_that_is_none_is_400() {
    let port = Port::open(Settings::default()).await;
    for (timeout, expected) in [("10s", 200), ("0", 200), ("-1s", 200), ("forever", 400), ("%00", 400)] {
        let answer = port.send(None, &format!("GET {GADGETS}?timeout={timeout}"), &[]).await;
        assert_eq!(code(&answer), expected, "{timeout}: {answer}");
    }
}

/// A client that asks for a large list and does not read it holds its place, and the list, until its time is up.
#[tokio::test]
async fn an_answer_that_is_not_read_is_let_go_at_its_deadline() {
    let request_timeout = Duration::from_secs(2);
    let port = Port::open(Settings { in_flight: 1, request_timeout, ..Settings::default() }).await;
    for i in 0..12 {
        let body = crate::fixture::gadget(
            &format!("g{i}"),
            serde_json::json!({"spec": {"color": "x".repeat(1_000_000)}}),
        )
        .to_string();
        let line = format!("POST {GADGETS}");
        let mut stream = port.connect(None, "http/1.1").await;
        let head = format!(
            "{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert_eq!(code(&answer), 201, "{answer}");
    }
    let mut lazy = port.connect(None, "http/1.1").await;
    lazy.write_all(format!("GET {GADGETS} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
    let mut first = [0; 16];
    lazy.read_exact(&mut first).await.unwrap();
    let refused = port.send(None, &format!("GET {GADGETS}/none"), &[]).await;
    assert_eq!(code(&refused), 429, "{refused}");
    assert!(refused.contains("retry-after: 1") && refused.contains("content-type: text/plain"), "{refused}");
    assert!(refused.contains("Too many requests, please try again later."), "{refused}");
    while code(&port.send(None, &format!("GET {GADGETS}/none"), &[]).await) == 429 {
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
