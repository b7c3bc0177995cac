//! A store that is filled with the history of one tenant's rewrites, and who may still write to it.

use std::time::Duration;

use drydock_storage::retention::Retention;
use drydock_storage_sqlite::SqliteOptions;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::certificates::Identity;
use super::fixture::{CONTROLLER, Port, Settings, code};
use crate::fixture::{GADGETS, gadget};

const QUOTA: u64 = 4 << 20;

/// A server whose store gives up no history while a test lasts.
struct Small {
    port: Port,
    proxy: Identity,
}

impl Small {
    async fn open() -> Self {
        let hour = Duration::from_secs(3600);
        let retention = Retention { half: hour, three_quarters: hour, full: hour };
        let store = SqliteOptions { quota: Some(QUOTA), retention, ..SqliteOptions::default() };
        let port = Port::open(Settings { store, ..Settings::default() }).await;
        let proxy = port.proxies.issue("front-proxy", "");
        Self { port, proxy }
    }

    async fn write(&self, user: &str, line: &str, body: &str) -> String {
        let mut stream = self.port.connect(Some(&self.proxy), "http/1.1").await;
        let type_ =
            if line.starts_with("PATCH") { "application/merge-patch+json" } else { "application/json" };
        let request = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-remote-user: {user}\r\n\
             x-remote-group: tenants\r\ncontent-type: {type_}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // Some servers end a connection without a word.
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    /// The status of a create of about so many bytes.
    async fn create(&self, user: &str, name: &str, bytes: usize) -> u16 {
        let body = gadget(name, json!({"spec": {"color": "x".repeat(bytes)}})).to_string();
        code(&self.write(user, &format!("POST {GADGETS}"), &body).await)
    }

    /// Rewrites an object until that is refused.
    async fn rewrite(&self, user: &str, name: &str, bytes: usize) -> String {
        for round in 0.. {
            let color = format!("{round:04}{}", "x".repeat(bytes));
            let body = json!({"spec": {"color": color}}).to_string();
            let answer = self.write(user, &format!("PATCH {GADGETS}/{name}"), &body).await;
            if code(&answer) != 200 {
                return answer;
            }
        }
        unreachable!()
    }
}

/// Regression: a user who rewrote one object filled the store, for everybody and for as long as history
/// was kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_fills_the_history_waits_and_nobody_else() {
    let server = Small::open().await;
    assert_eq!(server.create("flooder", "a", 60_000).await, 201);
    let refused = server.rewrite("flooder", "a", 60_000).await;
    assert_eq!(code(&refused), 429, "{refused}");
    assert!(
        refused.contains("retry-after: ") && refused.contains("the store is short of space"),
        "{refused}"
    );
    assert_eq!(server.create("flooder", "b", 100).await, 429);

    assert_eq!(server.create("neighbour", "c", 60_000).await, 201);
    let patch = json!({"spec": {"color": "red"}}).to_string();
    let patched = server.write("neighbour", &format!("PATCH {GADGETS}/c"), &patch).await;
    assert_eq!(code(&patched), 200, "{patched}");
    let deleted = server.write("flooder", &format!("DELETE {GADGETS}/a"), "").await;
    assert_eq!(code(&deleted), 200, "a delete is never refused: {deleted}");
}

/// The controllers' writes were refused with everybody's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_store_takes_what_the_controllers_write() {
    let server = Small::open().await;
    assert_eq!(server.create("tenant", "small", 100).await, 201);
    let mut made = 0;
    while server.create("tenant", &format!("g{made}"), 60_000).await == 201 {
        made += 1;
    }
    assert!(made > 40, "{made}");
    let grown = json!({"spec": {"color": "x".repeat(1000)}}).to_string();
    let patch = async |user| code(&server.write(user, &format!("PATCH {GADGETS}/small"), &grown).await);
    assert_eq!(patch("tenant").await, 507);
    assert_eq!(patch(CONTROLLER).await, 200);
    assert_eq!(server.create(CONTROLLER, "ours", 1000).await, 201);
}
