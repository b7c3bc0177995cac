//! A server on a port of its own, and a host that answers its reviews.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use drydock_machinery::kind::Kind;
use drydock_server::admission::Admission;
use drydock_server::audit::Audit;
use drydock_server::chain::Chain;
use drydock_server::flow_control::{FlowControl, InFlightLimits, PriorityLevels};
use drydock_server::generic::Mux;
use drydock_server::grpc::{Grpc, Service};
use drydock_server::metrics::Metrics;
use drydock_server::responses::OpenResponses;
use drydock_serving::auth::authn::{Authenticator, HostConfig, HostConfigSource, TokenReviewer};
use drydock_serving::auth::authz::Authorizer;
use drydock_serving::auth::impersonation::Impersonation;
use drydock_serving::auth::review::ReviewLimiter;
use drydock_serving::health::Health;
use drydock_serving::host::{self, KeepAlive};
use drydock_serving::serve::{self, Bounds};
use drydock_serving::tls::{self, ServingCertificate, self_signed};
use drydock_storage::cache::Config;
use drydock_storage_sqlite::SqliteOptions;
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::certificates::{Authority, Identity, client};
use crate::fixture::Server;
use crate::gadget::Gadget;

/// The user of --controller-users.
pub const CONTROLLER: &str = "controller";
/// Where clients connect from.
const HERE: [u8; 4] = [127, 0, 0, 1];

/// Decides on a SubjectAccessReview's spec.
pub type Rule = fn(&Value) -> bool;

pub struct Port {
    pub address: SocketAddr,
    pub clients: Authority,
    pub proxies: Authority,
    pub stop: CancellationToken,
    pub serving: AbortOnDropHandle<()>,
    _sweeper: AbortOnDropHandle<()>,
    _reviews: AbortOnDropHandle<()>,
    /// The CAs whose certificates are trusted.
    pub trusted: HostConfigSource,
    /// Whether the host answers reviews. While it does not, they wait.
    pub host_answers: watch::Sender<bool>,
    /// Whether the host answers reviews of tokens that it does not know.
    pub host_answers_strangers: watch::Sender<bool>,
    /// Whether the token `good` has been revoked.
    pub good_is_revoked: Arc<AtomicBool>,
    reviews: watch::Sender<usize>,
    asked: Arc<Mutex<Vec<Value>>>,
    tokens: Arc<AtomicUsize>,
    root: CertificateDer<'static>,
    _dir: tempfile::TempDir,
    _server_dir: tempfile::TempDir,
}

pub struct Settings {
    pub rule: Rule,
    pub bounds: Bounds,
    pub in_flight: usize,
    pub request_timeout: Duration,
    pub audit: Option<Arc<Audit>>,
    pub admission: Vec<Arc<dyn Admission>>,
    pub store: SqliteOptions,
    pub responses: OpenResponses,
    pub service: Option<Arc<dyn Service>>,
}

impl Default for Settings {
    fn default() -> Self {
        let request_timeout = Duration::from_secs(60);
        let (audit, admission) = (None, Vec::new());
        Self {
            rule: |_| true,
            bounds: Bounds::default(),
            in_flight: 400,
            request_timeout,
            audit,
            admission,
            store: SqliteOptions::default(),
            responses: OpenResponses::default(),
            service: None,
        }
    }
}

impl Port {
    pub async fn open(settings: Settings) -> Self {
        let (clients, proxies) = (Authority::new(), Authority::new());
        let server = Server::with(settings.admission, Config::default(), settings.store).await;
        let Server { api, backend, shutdown, caches, _dir: server_dir } = server;
        let mut metrics = Metrics::new();
        let kinds = [Gadget::namespaced(), Gadget::cluster()];
        metrics.show_caches(kinds.iter().map(Kind::names).zip(caches));
        let (asked, tokens) = (Arc::default(), Arc::default());
        settings.responses.register(metrics.registry());
        let (host_answers, answers) = watch::channel(true);
        let (host_answers_strangers, answers_strangers) = watch::channel(true);
        let good_is_revoked = Arc::<AtomicBool>::default();
        let reviews = watch::channel(0).0;
        let counted = Counted {
            reviews: reviews.clone(),
            asked: Arc::clone(&asked),
            tokens: Arc::clone(&tokens),
            good_is_revoked: good_is_revoked.clone(),
        };
        let host = reviewer(counted, settings.rule, answers, answers_strangers);
        let trusted = HostConfigSource::new(trust(&clients, &proxies));
        let limits = InFlightLimits { reading: settings.in_flight, mutating: settings.in_flight };
        let controllers = PriorityLevels::new([CONTROLLER.to_owned()]);
        let levels = controllers.clone();
        let limiter = Arc::new(ReviewLimiter::new(move |user| levels.of(user).is_of_cluster()));
        let flow_control = Arc::new(FlowControl::new(controllers, limits));
        metrics.show_flow_control(flow_control.clone());
        let responses = settings.responses.clone();
        let _sweeper = AbortOnDropHandle::new(tokio::spawn(async move { responses.look_after().await }));
        let health = Health::default()
            .live("ping", Arc::new(|| Ok(())))
            .notice("storage-writes", Arc::new(move || backend.refuses_writes()));
        let mount = |service| Grpc::new(service, health.clone(), shutdown.clone()).unwrap();
        let grpc = settings.service.map(mount);
        let chain = Chain {
            authenticator: Authenticator::new(
                trusted.clone(),
                Some(TokenReviewer::new(host.clone(), limiter.clone())),
                true,
            ),
            impersonation: Impersonation::default(),
            authorizer: Arc::new(Authorizer::new(host, limiter)),
            flow_control,
            health,
            metrics,
            audit: settings.audit,
            api,
            request_timeout: settings.request_timeout,
            responses: settings.responses,
        };
        let mux = Arc::new(Mux { chain: Arc::new(chain), grpc });
        let _reviews = AbortOnDropHandle::new(tokio::spawn(mux.clone().review_streams()));
        let dir = tempfile::tempdir().unwrap();
        let files = self_signed::ensure(dir.path(), &["localhost".to_owned()]).unwrap();
        let root = CertificateDer::from_pem_slice(&std::fs::read(&files.ca).unwrap()).unwrap();
        let certificate = ServingCertificate::load(files.certificate, files.key).unwrap();
        let tls = tls::server_config(Arc::new(certificate)).unwrap();
        let listener = serve::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(serve::serve(listener, tls, mux, shutdown.clone(), settings.bounds));
        let serving = AbortOnDropHandle::new(serving);
        let (stop, _dir, _server_dir) = (shutdown, dir, server_dir);
        Self {
            address,
            clients,
            proxies,
            stop,
            serving,
            _sweeper,
            _reviews,
            trusted,
            host_answers,
            host_answers_strangers,
            good_is_revoked,
            reviews,
            asked,
            tokens,
            root,
            _dir,
            _server_dir,
        }
    }

    pub async fn connect(&self, identity: Option<&Identity>, protocol: &str) -> TlsStream<TcpStream> {
        self.connect_from(HERE, identity, protocol).await
    }

    /// A connection from this address of loopback.
    pub async fn reach(&self, from: [u8; 4]) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    pub async fn connect_from(
        &self,
        from: [u8; 4],
        identity: Option<&Identity>,
        protocol: &str,
    ) -> TlsStream<TcpStream> {
        let connector = TlsConnector::from(Arc::new(client(self.root.clone(), identity, protocol)));
        let stream = self.reach(from).await;
        connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()
    }

    /// Sends one request over HTTP/1.1 and returns the answer as it came.
    pub async fn send(&self, identity: Option<&Identity>, line: &str, headers: &[(&str, &str)]) -> String {
        let mut stream = self.connect(identity, "http/1.1").await;
        let mut request = format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // The server may close without close_notify.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Sends one request with a body.
    pub async fn send_body(&self, line: &str, body: &str) -> String {
        send_body_on(self.connect(None, "http/1.1").await, line, body).await
    }

    /// A client of the daemon's own, to whom this server is the host.
    pub async fn as_host(&self) -> Client {
        let ca = self._dir.path().join("ca.crt");
        let cluster = json!({
            "server": format!("https://{}", self.address), "tls-server-name": "localhost", "certificate-authority": ca,
        });
        client_by(KeepAlive::default(), cluster, json!({})).await
    }

    /// The embedded store's file.
    pub fn store(&self) -> PathBuf {
        self._server_dir.path().join("db")
    }

    /// How many reviews have come to the host, with those that it has not answered yet.
    pub fn reviews(&self) -> usize {
        *self.reviews.borrow()
    }

    /// Waits until so many reviews have come to the host.
    pub async fn until_reviews(&self, count: usize) {
        self.reviews.subscribe().wait_for(|reviews| *reviews >= count).await.unwrap();
    }

    /// How many TokenReviews there have been.
    pub fn tokens(&self) -> usize {
        self.tokens.load(SeqCst)
    }

    /// The specs of the SubjectAccessReviews so far.
    pub fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut self.asked.lock())
    }
}

/// Sends one request with a body on this connection.
pub async fn send_body_on(mut stream: TlsStream<TcpStream>, line: &str, body: &str) -> String {
    let length = body.len();
    let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}");
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// A client by a kubeconfig with this cluster and user.
pub async fn client_by(keep_alive: KeepAlive, cluster: Value, user: Value) -> Client {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "users": [{"name": "u", "user": user}], "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), config.to_string()).unwrap();
    host::client_with(keep_alive, "--kubeconfig", Some(file.path())).await.unwrap()
}

pub fn trust(clients: &Authority, proxies: &Authority) -> HostConfig {
    let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    HostConfig {
        client_ca: Some(clients.client_ca()),
        requestheader_ca: Some(proxies.client_ca()),
        allowed_names: names(&["front-proxy"]),
        username_headers: names(&["X-Remote-User"]),
        uid_headers: names(&["X-Remote-Uid"]),
        group_headers: names(&["X-Remote-Group"]),
        extra_prefixes: names(&["X-Remote-Extra-"]),
    }
}

/// What the host counts, and what it is told.
#[derive(Clone)]
struct Counted {
    reviews: watch::Sender<usize>,
    asked: Arc<Mutex<Vec<Value>>>,
    tokens: Arc<AtomicUsize>,
    good_is_revoked: Arc<AtomicBool>,
}

/// Knows the token `good`, and decides by `rule`.
fn reviewer(
    counted: Counted,
    rule: Rule,
    answers: watch::Receiver<bool>,
    strangers: watch::Receiver<bool>,
) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (counted, mut answers, mut strangers) = (counted.clone(), answers.clone(), strangers.clone());
        async move {
            let Counted { reviews, asked, tokens, good_is_revoked } = counted;
            reviews.send_modify(|reviews| *reviews += 1);
            answers.wait_for(|answers| *answers).await.unwrap();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut review: Value = serde_json::from_slice(&body).unwrap();
            review["status"] = if review["kind"] == "TokenReview" {
                tokens.fetch_add(1, SeqCst);
                let is_known = review["spec"]["token"] == "good" && !good_is_revoked.load(SeqCst);
                if !is_known {
                    strangers.wait_for(|answers| *answers).await.unwrap();
                }
                json!({"authenticated": is_known, "user": {"username": "tokened"}})
            } else {
                asked.lock().push(review["spec"].clone());
                json!({"allowed": rule(&review["spec"]), "reason": "by rule"})
            };
            Ok::<_, std::convert::Infallible>(Response::new(Body::from(review.to_string().into_bytes())))
        }
    });
    Client::new(service, "default")
}

/// The status code of a raw answer.
#[track_caller]
pub fn code(answer: &str) -> u16 {
    answer.get(9..12).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("no answer: {answer:?}"))
}
