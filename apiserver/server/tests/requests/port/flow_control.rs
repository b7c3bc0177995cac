//! Attacks on the seats of a server by a user who may read and write in one namespace, and who is served meanwhile.

use std::time::Duration;

use drydock_serving::clock::testing::pass;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::certificates::Identity;
use super::fixture::{CONTROLLER, Port, Settings, code};
use super::frames::Connection;
use crate::fixture::{GADGETS, gadget};

/// A user as a front proxy forwards them: name and group.
type Who<'a> = (&'a str, &'a str);

const TENANT: Who<'_> = ("tenant", "tenants");
const NEIGHBOUR: Who<'_> = ("neighbour", "tenants");
const ADMIN: Who<'_> = ("admin", "system:masters");
const COLLECTOR: Who<'_> =
    ("system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccounts:kube-system");

/// A server, and the aggregator before it.
struct Aggregated {
    port: Port,
    proxy: Identity,
}

/// 60 seats: 12 of the system, 18 of controllers, 27 of everybody and 3 of anonymous users. Requests that are held keep
/// theirs for longer than a test lasts.
fn settings() -> Settings {
    Settings { in_flight: 30, request_timeout: Duration::from_secs(3600), ..Settings::default() }
}

impl Aggregated {
    async fn open(settings: Settings) -> Self {
        let port = Port::open(settings).await;
        let proxy = port.proxies.issue("front-proxy", "");
        Self { port, proxy }
    }

    /// So much that no list of it fits into the buffers of a connection.
    async fn fill(&self) {
        for number in 0..12 {
            let spec = serde_json::json!({"spec": {"color": "x".repeat(1_000_000)}});
            let body = gadget(&format!("g{number}"), spec).to_string();
            assert_eq!(code(&self.port.send_body(&format!("POST {GADGETS}"), &body).await), 201);
        }
    }

    async fn send(&self, (user, group): Who<'_>, line: &str) -> String {
        let headers = [("x-remote-user", user), ("x-remote-group", group)];
        self.port.send(Some(&self.proxy), line, &headers).await
    }

    async fn get(&self, who: Who<'_>) -> u16 {
        code(&self.send(who, &format!("GET {GADGETS}/none")).await)
    }

    /// A request whose answer is not read.
    async fn begin(&self, (user, group): Who<'_>, line: &str) -> TlsStream<TcpStream> {
        let mut stream = self.port.connect(Some(&self.proxy), "http/1.1").await;
        let user = format!("x-remote-user: {user}\r\nx-remote-group: {group}");
        stream.write_all(format!("{line} HTTP/1.1\r\nhost: a\r\n{user}\r\n\r\n").as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        stream
    }

    /// A figure of a priority level, as an administrator sees it.
    async fn figure(&self, name: &str, labels: &str) -> u64 {
        let metrics = self.send(ADMIN, "GET /metrics").await;
        let of = format!("apiserver_flowcontrol_{name}{{{labels}}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(of.as_str()));
        line.unwrap_or_else(|| panic!("{of} is not in {metrics}")).parse().unwrap()
    }

    async fn seats(&self, level: &str) -> u64 {
        self.figure("current_executing_seats", &format!(r#"priority_level="{level}",flow_schema="{level}""#))
            .await
    }

    async fn waiting(&self, level: &str) -> u64 {
        self.figure("current_inqueue_requests", &format!(r#"priority_level="{level}",flow_schema="{level}""#))
            .await
    }

    async fn until(&self, what: impl AsyncFn(&Self) -> bool) {
        let holds = async { while !what(self).await {} };
        tokio::time::timeout(Duration::from_secs(60), holds).await.expect("it comes to that");
    }

    /// Begins requests that are not read, each by the next of `users`, until one of them waits.
    async fn take_all<'w>(
        &self,
        mut users: impl Iterator<Item = Who<'w>>,
        line: &str,
    ) -> Vec<TlsStream<TcpStream>> {
        let mut held = Vec::new();
        while self.waiting("everybody").await == 0 {
            let before = self.seats("everybody").await;
            held.push(self.begin(users.next().unwrap(), line).await);
            self.until(async |it| it.seats("everybody").await > before || it.waiting("everybody").await > 0)
                .await;
        }
        held
    }

    async fn serves_everybody_but_the_tenant(&self) {
        for who in
            [NEIGHBOUR, COLLECTOR, (CONTROLLER, "x"), ("system:anonymous", "system:unauthenticated"), ADMIN]
        {
            assert_eq!(self.get(who).await, 404, "{who:?}");
            assert_eq!(code(&self.send(who, "GET /livez").await), 200, "{who:?}");
            // A list with a selector takes the most seats that a request can take.
            let list = self.send(who, &format!("GET {GADGETS}?labelSelector=none%3Dsuch")).await;
            assert_eq!(code(&list), 200, "{who:?}: {list}");
        }
    }
}

/// After twelve unread lists, probes, administrators and everybody else used to be answered 429 for a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_lists_of_one_tenant_keep_nobody_else_out() {
    let server = Aggregated::open(settings()).await;
    server.fill().await;
    let held = server.take_all(std::iter::repeat(TENANT), &format!("GET {GADGETS}")).await;
    assert!(held.len() > 1);
    server.serves_everybody_but_the_tenant().await;
    let waited = server.send(TENANT, &format!("GET {GADGETS}/none?timeout=4s")).await;
    assert_eq!(code(&waited), 429, "{waited}");
    assert_eq!(
        server
            .figure(
                "rejected_requests_total",
                r#"priority_level="everybody",flow_schema="everybody",reason="time-out""#
            )
            .await,
        1
    );
}

/// The same with bodies that do not come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_do_not_come_keep_nobody_else_out() {
    let server = Aggregated::open(settings()).await;
    let post = format!("POST {GADGETS} HTTP/1.1\r\ncontent-length: 300000\r\nx:");
    let held = server.take_all(std::iter::repeat(TENANT), &post).await;
    assert!(held.len() > 1);
    server.serves_everybody_but_the_tenant().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_accounts_of_a_namespace_get_no_more_than_one() {
    let mut seats = Vec::new();
    for accounts in [1, 1_000] {
        let server = Aggregated::open(settings()).await;
        server.fill().await;
        let names: Vec<_> = (0..accounts).map(|n| format!("system:serviceaccount:shop:a{n}")).collect();
        let users = names.iter().cycle().map(|name| (name.as_str(), "system:serviceaccounts:shop"));
        let _held = server.take_all(users, &format!("GET {GADGETS}")).await;
        seats.push(server.seats("everybody").await);
        server.serves_everybody_but_the_tenant().await;
        let metrics = server.send(ADMIN, "GET /metrics").await;
        assert!(!metrics.contains("shop"), "a tenant chooses names");
    }
    assert_eq!(seats[0], seats[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_full_is_429_at_once() {
    let server = Aggregated::open(settings()).await;
    server.fill().await;
    let list = format!("GET {GADGETS}");
    let held = server.take_all(std::iter::repeat(TENANT), &list).await;
    let mut more = Connection::open(server.port.connect(Some(&server.proxy), "h2").await).await;
    for _ in 1..50 {
        more.ask(&list, &[("x-remote-user", TENANT.0), ("x-remote-group", TENANT.1)], "").await;
    }
    server.until(async |it| it.waiting("everybody").await == 50).await;
    let refused = server.send(TENANT, &list).await;
    assert_eq!(code(&refused), 429, "{refused}");
    assert!(refused.contains("retry-after: 1") && refused.contains("content-type: text/plain"), "{refused}");
    assert!(refused.ends_with("Too many requests, please try again later.\n"), "{refused}");
    assert_eq!(
        server
            .figure(
                "rejected_requests_total",
                r#"priority_level="everybody",flow_schema="everybody",reason="queue-full""#
            )
            .await,
        1
    );
    server.serves_everybody_but_the_tenant().await;

    // A request whose client is gone waits no longer, and holds no seats.
    drop((held, more));
    server.until(async |it| it.waiting("everybody").await == 0 && it.seats("everybody").await == 0).await;
    assert_eq!(server.get(TENANT).await, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_is_served_when_seats_come_back() {
    let server = Aggregated::open(settings()).await;
    server.fill().await;
    let mut held = server.take_all(std::iter::repeat(TENANT), &format!("GET {GADGETS}")).await;
    let mut waits = held.pop().unwrap();
    drop(held);
    let mut first = [0; 12];
    waits.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    assert_eq!(server.waiting("everybody").await, 0);
}

/// Tenants in any number have what everybody has, and what others lend them: never all that others have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tenants_do_not_keep_out_the_system_and_the_controllers() {
    let server = Aggregated::open(settings()).await;
    let names: Vec<_> = (0..1_000).map(|n| format!("tenant-{n}")).collect();
    let users = names.iter().map(|name| (name.as_str(), "tenants"));
    let post = format!("POST {GADGETS} HTTP/1.1\r\ncontent-length: 10\r\nx:");
    let held = server.take_all(users, &post).await;
    assert_eq!(held.len(), 41, "27 of everybody, 13 that are lent, and the one who waits");
    for who in [COLLECTOR, (CONTROLLER, "x"), ("system:anonymous", "system:unauthenticated"), ADMIN] {
        assert_eq!(server.get(who).await, 404, "{who:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_holds_seats_until_its_initial_events_are_sent() {
    let server = Aggregated::open(settings()).await;
    server.fill().await;
    let mut read = server.begin(TENANT, &format!("GET {GADGETS}?watch=1")).await;
    let unread = server.begin(TENANT, &format!("GET {GADGETS}?watch=1")).await;
    server.until(async |it| it.seats("everybody").await == 8).await;
    read.read_exact(&mut vec![0; 12_000_000]).await.unwrap();
    server.until(async |it| it.seats("everybody").await == 4).await;
    drop(unread);
    server.until(async |it| it.seats("everybody").await == 0).await;

    let dispatched = r#"priority_level="everybody",flow_schema="everybody""#;
    let before = server.figure("dispatched_requests_total", dispatched).await;
    let _later = server.begin(TENANT, &format!("GET {GADGETS}?watch=1&resourceVersion=5")).await;
    server.until(async |it| it.figure("dispatched_requests_total", dispatched).await > before).await;
    server.until(async |it| it.seats("everybody").await == 0).await;
}

#[tokio::test]
async fn a_watch_whose_initial_events_are_not_read_holds_seats_until_its_deadline() {
    let server = Aggregated::open(Settings { in_flight: 30, ..Settings::default() }).await;
    server.fill().await;
    let mut unread = server.begin(TENANT, &format!("GET {GADGETS}?watch=1")).await;
    let dispatched = r#"priority_level="everybody",flow_schema="everybody""#;
    server.until(async |it| it.figure("dispatched_requests_total", dispatched).await == 1).await;
    assert!(server.seats("everybody").await > 0, "it holds seats");
    pass(Settings::default().request_timeout).await;
    server.until(async |it| it.seats("everybody").await == 0).await;
    unread.read_exact(&mut vec![0; 12_000_000]).await.expect("the watch goes on");
}

#[tokio::test]
async fn without_a_limit_nobody_waits_and_requests_are_counted() {
    let server = Aggregated::open(Settings { in_flight: 0, ..Settings::default() }).await;
    let metrics = server.send(ADMIN, "GET /metrics").await;
    assert!(
        metrics.contains(r#"apiserver_current_inflight_requests{request_kind="readOnly"} 1"#),
        "{metrics}"
    );
    assert!(!metrics.contains("priority_level="), "{metrics}");
}
