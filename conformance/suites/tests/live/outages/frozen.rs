//! A replica that is stopped for half a minute, as when its machine is moved, and then continues.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::{node_maintenance, node_maintenances};
use drydock_testkit::wait::https_ready;
use futures::future::join_all;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use kube::client::ConfigExt;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, interval};
use tokio_rustls::TlsConnector;

use crate::programs::setup::{APISERVER, ProgramSetup};
use crate::shared::LIMIT;

const FROZEN: Duration = Duration::from_secs(30);
/// The pause between two writes meanwhile.
const PAUSE: Duration = Duration::from_millis(200);
/// Requests that are cancelled after each write: more than h2 accepts from any client but a front proxy.
const GIVEN_UP: usize = 30;
/// Bytes of a stream that may be unread: less than half of what a front proxy is sent.
const WINDOW: u32 = 32 * 1024;
const NAME: &str = "beside-a-frozen-replica";
const PATH: &str = "/apis/coordination.k8s.io/v1alpha1/nodemaintenances";

/// The connection of the aggregator stands for those of all users: what was given up on it while nobody answered must
/// not end it, and what was written elsewhere must not be missing from the first answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_was_frozen_answers_nothing_stale_and_breaks_nothing() -> Result<()> {
    let host = TestHost::shared().await?;
    let (frozen, other) = (replica(&host, "frozen").await?, replica(&host, "not-frozen").await?);
    let more = [format!("--etcd-servers={}", host.etcd), "--etcd-prefix=/frozen".to_owned()];
    let (process, _beside) = (frozen.start(&more)?, other.start(&more)?);
    for program in [&frozen, &other] {
        https_ready(program.port, "/readyz", LIMIT).await?;
    }
    let beside = other.admin(&host).await?;
    let maintenance = serde_json::from_value(node_maintenance(NAME, "Idle", &["nowhere"]))?;
    node_maintenances(&beside).create(&PostParams::default(), &maintenance).await?;
    let proxy = proxy(&host, frozen.port).await?;
    let mut watch = Watch::open(&proxy).await?;

    process.freeze()?;
    let (until, mut pace, mut round) = (Instant::now() + FROZEN, interval(PAUSE), 0);
    while pace.tick().await < until {
        round += 1;
        write(&beside, round).await?;
        give_up(&proxy).await;
    }
    process.thaw()?;

    assert_eq!(read(&proxy).await?, round, "an answer of before it stood still");
    let delivered = tokio::time::timeout(LIMIT, watch.read_until(round)).await;
    delivered.with_context(|| format!("silent after round {} of {round}", watch.last_round))??;
    ensure!(!proxy.is_closed(), "the connection was ended");
    https_ready(frozen.port, "/readyz", LIMIT).await
}

async fn replica(host: &TestHost, test: &str) -> Result<ProgramSetup> {
    let mut program = ProgramSetup::new(host, test, APISERVER, &host.url).await?;
    program.flags.retain(|flag| !flag.starts_with("--data-dir"));
    Ok(program)
}

async fn write(client: &Client, round: u64) -> Result<()> {
    let noted = json!({"metadata": {"annotations": {"round": round.to_string()}}});
    let maintenances = node_maintenances(client);
    Ok(maintenances.patch(NAME, &PatchParams::default(), &Patch::Merge(&noted)).await.map(drop)?)
}

/// Sends a request, and cancels it without an answer.
async fn give_up(proxy: &SendRequest<Empty<Bytes>>) {
    let asked = (0..GIVEN_UP).map(|_| {
        let mut proxy = proxy.clone();
        async move { tokio::time::timeout(PAUSE / 4, proxy.send_request(get(PATH))).await.is_ok() }
    });
    join_all(asked).await;
}

/// The round in the first answer; after an error it asks again.
async fn read(proxy: &SendRequest<Empty<Bytes>>) -> Result<u64> {
    let began = Instant::now();
    while began.elapsed() < LIMIT {
        let answer = proxy.clone().send_request(get(&format!("{PATH}/{NAME}"))).await?;
        let is_good = answer.status().is_success();
        let body = answer.into_body().collect().await?.to_bytes();
        if is_good {
            return round_of(&serde_json::from_slice(&body)?);
        }
    }
    anyhow::bail!("no answer within {LIMIT:?}")
}

fn round_of(object: &Value) -> Result<u64> {
    let noted = object["metadata"]["annotations"]["round"].as_str();
    Ok(noted.map(str::parse).transpose()?.unwrap_or_default())
}

/// An open watch.
struct Watch {
    body: Incoming,
    text: Vec<u8>,
    /// The last round that it reported.
    last_round: u64,
}

impl Watch {
    async fn open(proxy: &SendRequest<Empty<Bytes>>) -> Result<Watch> {
        let path = format!("{PATH}?watch=1&resourceVersion=0&timeoutSeconds=600");
        let answer: Response<Incoming> = proxy.clone().send_request(get(&path)).await?;
        ensure!(answer.status().is_success(), "a watch was answered {}", answer.status());
        Ok(Watch { body: answer.into_body(), text: Vec::new(), last_round: 0 })
    }

    /// Reads up to a round; each one comes, in order.
    async fn read_until(&mut self, round: u64) -> Result<()> {
        while self.last_round < round {
            let frame = self.body.frame().await.context("the watch ended")??;
            self.text.extend_from_slice(frame.data_ref().map(AsRef::as_ref).unwrap_or_default());
            while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let event: Value = serde_json::from_slice(&self.text.drain(..=end).collect::<Vec<u8>>())?;
                let delivered = round_of(&event["object"])?;
                ensure!(event["type"] != "ERROR", "{event}");
                ensure!(
                    delivered == 0 || delivered == self.last_round + 1,
                    "round {delivered} after round {}",
                    self.last_round
                );
                self.last_round = delivered;
            }
        }
        Ok(())
    }
}

/// A connection as the aggregator's, whose requests are an administrator's.
async fn proxy(host: &TestHost, port: u16) -> Result<SendRequest<Empty<Bytes>>> {
    let mut config = kube::Config::new(format!("https://127.0.0.1:{port}").parse()?);
    config.accept_invalid_certs = true;
    let identity = &host.pki.front_proxy;
    config.auth_info.client_certificate = Some(identity.cert.display().to_string());
    config.auth_info.client_key = Some(identity.key.display().to_string());
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let stream =
        TlsConnector::from(Arc::new(tls)).connect(ServerName::try_from("127.0.0.1")?, stream).await?;
    // The aggregator sends a window update for every 4 KiB that were read (golang.org/x/net/http2), hyper for
    // half a window.
    let (sends, connection) = Builder::new(TokioExecutor::new())
        .initial_stream_window_size(WINDOW)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::spawn(connection);
    Ok(sends)
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = format!("https://replica{path}").parse().unwrap_or_default();
    for (name, value) in [("x-remote-user", "admin"), ("x-remote-group", "system:masters")] {
        request.headers_mut().insert(name, http::HeaderValue::from_static(value));
    }
    request
}
