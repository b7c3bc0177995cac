//! Requests of a client with a direct route, to an API server on loopback and to a host that is a function.

#![allow(clippy::unwrap_used)]
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use drydock_runtime::metrics::Metrics;
use drydock_serving::auth::authn::Peer;
use drydock_serving::clock::testing::StoppedClock;
use drydock_serving::host::ServiceRef;
use drydock_serving::serve::{self, Bounds, RequestHandler};
use drydock_serving::tasks::ProgramTasks;
use drydock_serving::tls::{CertificateSource, server_config};
use http::{HeaderMap, StatusCode, header};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::direct::api_service::NoServer;

const PATH: &str = "/apis/coordination.k8s.io/v1alpha1/nodemaintenances/a";
const HOSTS: u16 = 202;

/// An API server: it answers with a code, or not at all, and records who asked.
struct ApiServer {
    code: Mutex<Option<StatusCode>>,
    /// The connection and the headers of each request.
    asked: Mutex<Vec<(u64, HeaderMap)>>,
    port: u16,
    dir: TempDir,
}

impl RequestHandler for Recorder {
    type Body = axum::body::Body;

    async fn handle(&self, request: Request<Self::Body>, peer: &Peer) -> Response<Self::Body> {
        let connection = peer.origin(std::time::Instant::now()).connection;
        self.0.asked.lock().push((connection, request.headers().clone()));
        let code = *self.0.code.lock();
        let Some(code) = code else { return std::future::pending().await };
        let mut answer = Response::new(Self::Body::empty());
        *answer.status_mut() = code;
        answer
    }
}

struct Recorder(Arc<ApiServer>);

impl ApiServer {
    async fn start() -> Arc<Self> {
        let dir = tempfile::tempdir().unwrap();
        let (cert_dir, names) = (dir.path().to_owned(), vec!["a.n.svc".to_owned()]);
        let source = CertificateSource { files: None, cert_dir, names };
        let tls =
            server_config(source.certificate(&ProgramTasks::new(CancellationToken::new())).unwrap()).unwrap();
        let listener = serve::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        std::fs::write(dir.path().join("token"), "the token").unwrap();
        let (code, asked) = (Mutex::new(Some(StatusCode::OK)), Mutex::default());
        let server = Arc::new(Self { code, asked, port, dir });
        let (recorder, never) = (Arc::new(Recorder(server.clone())), CancellationToken::new());
        tokio::spawn(serve::serve(listener, tls, recorder, never, Bounds::default()));
        server
    }

    fn answer(&self, code: u16) {
        *self.code.lock() = Some(StatusCode::from_u16(code).unwrap());
    }

    /// Takes requests from now on, and answers none.
    fn hang(&self) {
        *self.code.lock() = None;
    }

    fn connections(&self) -> Vec<u64> {
        self.asked.lock().iter().map(|(connection, _)| *connection).collect()
    }

    fn verified_by(&self, ca_dir: &Path) -> VerifiedServer {
        let service = ServiceRef { namespace: "n".into(), name: "a".into(), port: self.port };
        VerifiedServer { service, ca_bundle: std::fs::read(ca_dir.join("ca.crt")).unwrap() }
    }
}

/// The host: what it was asked through the aggregator.
type Aggregated = Arc<Mutex<Vec<String>>>;

struct Setup {
    server: Arc<ApiServer>,
    route: Arc<DirectRoute>,
    client: Client,
    metrics: Metrics,
    aggregated: Aggregated,
}

impl Setup {
    async fn new() -> Self {
        let (server, aggregated, metrics) = (ApiServer::start().await, Aggregated::default(), Metrics::new());
        let told = aggregated.clone();
        let host = service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            // The Service leads to loopback.
            let service = json!({"spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}).to_string();
            let is_service = path == "/api/v1/namespaces/n/services/a";
            if !is_service {
                told.lock().push(format!("{} {path}", request.method()));
            }
            let answer = Response::builder().status(if is_service { 200 } else { HOSTS });
            let answer = answer.body(Body::from(service.into_bytes())).unwrap();
            async { Ok::<_, Infallible>(answer) }
        });
        let host = Client::new(host, "default");
        let route = Arc::new(DirectRoute::unknown(host.clone(), server.dir.path().join("token"), &metrics));
        route.set(Ok(server.verified_by(server.dir.path())));
        let client = route.over(host);
        Self { server, route, client, metrics, aggregated }
    }

    async fn send(&self, method: &str, path: &str, body: &str) -> u16 {
        self.try_send(method, path, body).await.unwrap()
    }

    async fn try_send(&self, method: &str, path: &str, body: &str) -> kube::Result<u16> {
        let request = Request::builder().method(method).uri(path).body(Body::from(body.as_bytes().to_vec()));
        Ok(self.client.send(request.unwrap()).await?.status().as_u16())
    }

    /// Sends a request to a server that hangs, until it is not waited for any more. The breaker's pause after it lasts as long as
    /// the clock stands still.
    async fn send_in_vain(&self, clock: &StoppedClock, method: &str, body: &str) -> kube::Result<u16> {
        let before = self.server.connections().len();
        let silence = async {
            while self.server.connections().len() == before {
                tokio::task::yield_now().await;
            }
            clock.advance(Duration::from_secs(76)).await;
        };
        tokio::join!(self.try_send(method, PATH, body), silence).0
    }

    async fn get(&self) -> u16 {
        self.send("GET", PATH, "").await
    }

    /// How many requests went through the aggregator for this reason.
    fn fallbacks(&self, reason: &str) -> u64 {
        let series = format!("drydock_apiservice_fallback_total{{reason=\"{reason}\"}} ");
        let shown = self.metrics.render();
        shown.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok()).unwrap_or_default()
    }

    /// Asks until a request goes straight again, after the pause of the breaker.
    async fn straight_again(&self, clock: &StoppedClock) {
        let before = self.server.connections().len();
        while self.server.connections().len() == before {
            clock.advance(Duration::from_secs(1)).await;
            self.get().await;
        }
    }
}

#[tokio::test]
async fn our_kinds_go_straight_with_their_token_and_all_others_to_the_host() {
    let setup = Setup::new().await;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l";
    assert_eq!([setup.get().await, setup.send("PATCH", PATH, "{}").await], [200, 200]);
    assert_eq!(setup.send("PUT", lease, "{}").await, HOSTS);
    assert_eq!(*setup.aggregated.lock(), [format!("PUT {lease}")]);
    let asked = setup.server.asked.lock();
    assert!(
        asked.iter().all(|(_, headers)| headers[header::AUTHORIZATION] == "Bearer the token"),
        "{asked:?}"
    );
    assert!(asked[0].0 == asked[1].0, "over one connection: {asked:?}");
}

/// A denial that the aggregator was asked about again would be a second request, and perhaps a second write.
#[tokio::test]
async fn what_the_server_has_judged_is_not_asked_of_the_aggregator() {
    let setup = Setup::new().await;
    for code in [401, 403, 404, 409, 422, 429, 500, 504] {
        setup.server.answer(code);
        assert_eq!(setup.send("PATCH", PATH, r#"{"metadata":{"uid":"u"}}"#).await, code);
    }
    assert_eq!((setup.aggregated.lock().len(), setup.server.connections().len()), (0, 8));
}

#[tokio::test]
async fn a_replica_that_answers_503_is_left() {
    let setup = Setup::new().await;
    let clock = StoppedClock::stop();
    assert_eq!(setup.get().await, 200);
    setup.server.answer(503);
    assert_eq!(setup.get().await, HOSTS);
    assert_eq!(setup.fallbacks("unavailable"), 1);
    setup.server.answer(200);
    setup.straight_again(&clock).await;
    let connections = setup.server.connections();
    assert_eq!(connections[0], connections[1]);
    assert_ne!(connections[1], connections[2], "the connection of the 503 is used no more");
}

/// A replica whose etcd member is cut off becomes unready, and keeps its connections all the same. It has judged the request.
#[tokio::test]
async fn a_replica_that_answers_504_is_left_and_its_answer_is_final() {
    let setup = Setup::new().await;
    assert_eq!(setup.get().await, 200);
    setup.server.answer(504);
    assert_eq!(setup.get().await, 504);
    setup.server.answer(200);
    assert_eq!(setup.get().await, 200, "it goes straight");
    let connections = setup.server.connections();
    assert_eq!(connections[0], connections[1]);
    assert_ne!(connections[1], connections[2], "the connection of the 504 is used no more");
    assert!(setup.aggregated.lock().is_empty());
}

/// Each request went to the same server again, over the same connection, and the aggregator was asked for none.
#[tokio::test]
async fn a_replica_that_takes_requests_and_answers_none_is_left() {
    let setup = Setup::new().await;
    let clock = StoppedClock::stop();
    assert_eq!(setup.get().await, 200);
    setup.server.hang();
    assert_eq!(setup.send_in_vain(&clock, "GET", "").await.unwrap(), HOSTS);
    assert_eq!(setup.fallbacks("no_answer"), 1);
    setup.server.answer(200);
    setup.straight_again(&clock).await;
    let connections = setup.server.connections();
    assert_eq!(connections[0], connections[1]);
    assert_ne!(connections[1], connections[2], "the connection without an answer is used no more");
}

#[tokio::test]
async fn a_write_without_an_answer_is_made_again_only_if_that_does_no_harm() {
    let setup = Setup::new().await;
    let clock = StoppedClock::stop();
    setup.server.hang();
    let error = setup.send_in_vain(&clock, "DELETE", "").await.unwrap_err();
    assert!(NoAnswer::of(&error).is_some_and(|silent| silent.request.starts_with("DELETE ")), "{error:?}");
    assert!(setup.aggregated.lock().is_empty());
    assert_eq!(setup.send("DELETE", PATH, "").await, HOSTS, "the next request takes the other route");
    setup.server.answer(200);
    setup.straight_again(&clock).await;
    setup.server.hang();
    let bound_to_a_uid = r#"{"preconditions": {"uid": "u"}}"#;
    assert_eq!(setup.send_in_vain(&clock, "DELETE", bound_to_a_uid).await.unwrap(), HOSTS);
}

/// While the server hung, each request that tried it was waited for 75 s, and another one tried every 10 s.
#[tokio::test]
async fn a_request_that_tries_a_server_that_hangs_is_waited_for_until_another_one_may_try() {
    let setup = Setup::new().await;
    let clock = StoppedClock::stop();
    setup.server.hang();
    assert_eq!(setup.send_in_vain(&clock, "GET", "").await.unwrap(), HOSTS);
    clock.advance(Duration::from_secs(1)).await;
    let less_than_for_any_other = async {
        while setup.server.connections().len() == 1 {
            tokio::task::yield_now().await;
        }
        for _ in 0..70 {
            clock.advance(Duration::from_secs(1)).await;
        }
    };
    let code = tokio::select! {
        biased;
        code = setup.get() => Some(code),
        () = less_than_for_any_other => None,
    };
    assert_eq!((code, setup.fallbacks("no_answer")), (Some(HOSTS), 2));
    let connections = setup.server.connections();
    assert_ne!(connections[0], connections[1], "it goes over a connection of its own");
}

/// The outcome of a write that a server answered with 503 while it ended is not certain.
#[tokio::test]
async fn a_write_that_might_be_made_twice_is_sent_once() {
    let setup = Setup::new().await;
    setup.server.answer(503);
    // The pause after the 503 lasts as long as the clock stands still.
    let _clock = StoppedClock::stop();
    assert_eq!(setup.send("DELETE", PATH, "").await, 503);
    assert_eq!((setup.aggregated.lock().len(), setup.fallbacks("unavailable")), (0, 0));
    assert_eq!(setup.send("DELETE", PATH, "").await, HOSTS, "the next request takes the other route");
}

#[tokio::test]
async fn a_server_that_is_gone_is_replaced_by_the_aggregator_for_reads_and_writes() {
    let setup = Setup::new().await;
    let mut verified = setup.server.verified_by(setup.server.dir.path());
    // Nothing listens on the port of a listener that is gone.
    verified.service.port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    setup.route.set(Ok(verified));
    for method in ["GET", "PATCH", "DELETE"] {
        assert_eq!(setup.send(method, PATH, "{}").await, HOSTS, "{method}");
    }
    assert_eq!((setup.fallbacks("connect"), setup.server.connections().len()), (3, 0));
}

#[tokio::test]
async fn a_new_bundle_makes_a_new_client() {
    let (setup, other) = (Setup::new().await, ApiServer::start().await);
    assert_eq!(setup.get().await, 200);
    // The server goes on; only what is believed of its certificate changes.
    setup.route.set(Ok(setup.server.verified_by(other.dir.path())));
    assert_eq!((setup.get().await, setup.fallbacks("tls")), (HOSTS, 1));
    setup.route.set(Ok(setup.server.verified_by(setup.server.dir.path())));
    assert_eq!(setup.get().await, 200, "a change ends the pause");
    let connections = setup.server.connections();
    assert_ne!(connections[0], connections[1]);
    setup.route.set(Ok(setup.server.verified_by(setup.server.dir.path())));
    assert_eq!((setup.get().await, setup.server.connections()[2]), (200, connections[1]), "the same again");
}

/// A request to the server before was under way when the APIService changed.
#[tokio::test]
async fn a_late_failure_of_the_server_before_does_not_hold_up_the_new_one() {
    let setup = Setup::new().await;
    let now = Instant::now();
    let (attempt, before) = setup.route.enter(now).unwrap();
    let mut elsewhere = setup.server.verified_by(setup.server.dir.path());
    elsewhere.service.namespace = "o".into();
    setup.route.set(Ok(elsewhere));
    let (_, present) = setup.route.enter(now).unwrap();
    setup.route.failed(attempt, &before, &DirectFailure::Unavailable, now);
    assert!(setup.route.enter(now).is_some(), "it is open");
    setup.route.failed(attempt, &present, &DirectFailure::Unavailable, now);
    assert!(setup.route.enter(now).is_none(), "it fails itself");
    setup.route.succeeded(attempt, &before);
    assert!(setup.route.enter(now).is_none(), "an answer of the server before is not its own");
}

#[tokio::test]
async fn without_a_server_that_can_be_verified_the_aggregator_is_asked() {
    let setup = Setup::new().await;
    setup.route.set(Err(NoServer::Insecure));
    assert_eq!((setup.get().await, setup.fallbacks("apiservice")), (HOSTS, 1));
    let mut verified = setup.server.verified_by(setup.server.dir.path());
    verified.ca_bundle = b"none".to_vec();
    setup.route.set(Ok(verified));
    assert_eq!((setup.get().await, setup.fallbacks("apiservice")), (HOSTS, 2));
    assert!(setup.server.connections().is_empty());
}

#[test]
fn the_kinds_of_our_version_are_ours_and_leases_are_the_hosts() {
    for path in ["", "/nodemaintenances", "/namespaces/a/evictionrequests/b/status"] {
        assert!(is_of_own_kinds(&format!("/apis/coordination.k8s.io/v1alpha1{path}")), "{path}");
    }
    for path in [
        "/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
        "/apis/coordination.k8s.io/v1alpha12/leases",
        "/apis/coordination.k8s.io",
        "/api/v1/pods",
        "/version",
    ] {
        assert!(!is_of_own_kinds(path), "{path}");
    }
}
