//! A Kubernetes API over HTTP/2.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use serde_json::Value;
use tokio_rustls::TlsConnector;

use super::connection::{ConnectionWindows, client_config, open};
use super::{Credentials, ReadPage, SubjectClient, WatchBeginning};
use crate::object::{self, ObjectApi};

const PAGE: usize = 500;
const AGENT: &str = "bench";
/// How often a request that a busy server puts off is sent once more (client-go, rest/request.go).
const RETRIES: usize = 10;

/// Some connections to an API server.
pub struct HttpClient {
    api: ObjectApi,
    collection: String,
    authority: String,
    lanes: Vec<SendRequest<Full<Bytes>>>,
}

impl HttpClient {
    /// Opens the connections to a port on loopback.
    pub async fn connect(
        port: u16,
        credentials: &Credentials,
        api: ObjectApi,
        lanes: usize,
        windows: ConnectionWindows,
    ) -> Result<Self> {
        let tls = TlsConnector::from(Arc::new(client_config(credentials)?));
        let mut connections = Vec::with_capacity(lanes);
        for _ in 0..lanes {
            connections.push(open(&tls, port, windows).await?);
        }
        let authority = format!("127.0.0.1:{port}");
        Ok(Self { api, collection: api.collection(), authority, lanes: connections })
    }

    /// A document.
    pub async fn read(&self, path: &str) -> Result<Bytes> {
        let answer = self.ask(0, "GET", path, Bytes::new()).await?;
        Ok(answer.into_body().collect().await?.to_bytes())
    }

    /// An object of so many bytes, as the server's API has it.
    pub fn object(&self, name: &str, size: usize) -> Result<Bytes> {
        self.api.object(name, size)
    }

    /// How a create that stores nothing was answered, by a server that may refuse it.
    pub async fn try_create(&self, lane: usize, object: Bytes) -> Result<StatusCode> {
        let path = format!("{}?dryRun=All", self.collection);
        status(self.send(lane, "POST", &path, object).await?).await
    }

    /// How a GET was answered, by a server that may refuse it.
    pub async fn try_get(&self, lane: usize, name: &str) -> Result<StatusCode> {
        status(self.send(lane, "GET", &format!("{}/{name}", self.collection), Bytes::new()).await?).await
    }

    /// Replaces the status of an object at its revision; the new one. What a busy server puts off is sent once more.
    pub async fn report(&self, lane: usize, name: &str, object: Bytes) -> Result<String> {
        let path = format!("{}/{name}/status", self.collection);
        let answer = self.ask_again(lane, "PUT", &path, object).await?;
        revision(&answer.into_body().collect().await?.to_bytes())
    }

    /// The answer to a gRPC call, whose body is a message in its frame.
    pub async fn call(&self, lane: usize, method: &str, body: Bytes) -> Result<Incoming> {
        let request = http::Request::post(format!("https://{}{method}", self.authority))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let answer = self.send_on(lane, request.body(Full::new(body))?).await?;
        ensure!(
            answer.status() == StatusCode::OK && !answer.headers().contains_key("grpc-status"),
            "{method}: {}: {:?}",
            answer.status(),
            answer.headers()
        );
        Ok(answer.into_body())
    }

    /// The answer to a request that is not refused.
    async fn ask(
        &self,
        lane: usize,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<http::Response<Incoming>> {
        succeeded(method, path, self.send(lane, method, path, body).await?).await
    }

    /// The answer to a request that a busy server may put off, which is then sent once more when the server says (as
    /// client-go does); the time counts as that of the request.
    async fn ask_again(
        &self,
        lane: usize,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<http::Response<Incoming>> {
        for _ in 0..RETRIES {
            let answer = self.send(lane, method, path, body.clone()).await?;
            let Some(pause) = put_off(&answer)? else { return succeeded(method, path, answer).await };
            tokio::time::sleep(pause).await;
        }
        self.ask(lane, method, path, body).await
    }

    async fn send(
        &self,
        lane: usize,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<http::Response<Incoming>> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.authority))
            .header("accept", "application/json")
            .header("user-agent", AGENT);
        if !body.is_empty() {
            let type_ = if method == "PATCH" { "application/apply-patch+yaml" } else { "application/json" };
            request = request.header("content-type", type_);
        }
        self.send_on(lane, request.body(Full::new(body))?).await
    }

    async fn send_on(
        &self,
        lane: usize,
        request: http::Request<Full<Bytes>>,
    ) -> Result<http::Response<Incoming>> {
        let mut sender = self.lanes[lane % self.lanes.len()].clone();
        sender.ready().await?;
        Ok(sender.send_request(request).await?)
    }
}

#[async_trait(?Send)]
impl SubjectClient for HttpClient {
    fn api(&self) -> &ObjectApi {
        &self.api
    }

    async fn create(&self, lane: usize, _: &str, object: Bytes) -> Result<()> {
        let answer = self.ask(lane, "POST", &self.collection, object).await?;
        ensure!(answer.status() == StatusCode::CREATED, "a create was answered {}", answer.status());
        answer.into_body().collect().await?;
        Ok(())
    }

    async fn apply(&self, lane: usize, name: &str, configuration: Bytes) -> Result<()> {
        let path = format!("{}/{name}?fieldManager={AGENT}", self.collection);
        self.ask(lane, "PATCH", &path, configuration).await?.into_body().collect().await?;
        Ok(())
    }

    async fn get(&self, lane: usize, name: &str) -> Result<Bytes> {
        let path = format!("{}/{name}", self.collection);
        let answer = self.ask(lane, "GET", &path, Bytes::new()).await?;
        Ok(answer.into_body().collect().await?.to_bytes())
    }

    async fn revision_of(&self, lane: usize, name: &str) -> Result<String> {
        revision(&self.get(lane, name).await?)
    }

    async fn swap(&self, lane: usize, name: &str, beat: u64, known: &str) -> Result<Option<String>> {
        let subresource = if self.api.has_status { "/status" } else { "" };
        let path = format!("{}/{name}{subresource}", self.collection);
        let body = self.api.beating(name, beat, Some(known))?;
        let answer = self.send(lane, "PUT", &path, body).await?;
        let status = answer.status();
        let said = answer.into_body().collect().await?.to_bytes();
        match status {
            StatusCode::OK => revision(&said).map(Some),
            StatusCode::CONFLICT => Ok(None),
            _ => anyhow::bail!("PUT {path}: {status}: {}", String::from_utf8_lossy(&said)),
        }
    }

    async fn list(&self, lane: usize) -> Result<Incoming> {
        Ok(self.ask(lane, "GET", &self.collection, Bytes::new()).await?.into_body())
    }

    async fn page(&self, lane: usize, token: Option<&str>) -> Result<ReadPage> {
        let path = format!("{}?limit={PAGE}&continue={}", self.collection, token.unwrap_or_default());
        let answer = self.ask(lane, "GET", &path, Bytes::new()).await?;
        let body = answer.into_body().collect().await?.to_bytes();
        let next = object::text(&body, "continue").filter(|token| !token.is_empty()).map(str::to_owned);
        Ok(ReadPage { body, next })
    }

    async fn revision(&self) -> Result<String> {
        // Of the list, not of the item in it.
        let page: Value = serde_json::from_slice(&self.read(&format!("{}?limit=1", self.collection)).await?)?;
        let revision = page["metadata"]["resourceVersion"].as_str().context("a list without a revision")?;
        Ok(revision.to_owned())
    }

    async fn watch(&self, lane: usize, from: WatchBeginning<'_>) -> Result<Incoming> {
        let from = match from {
            WatchBeginning::Revision(revision) => format!("resourceVersion={revision}"),
            WatchBeginning::InitialEvents => "sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                                    &allowWatchBookmarks=true"
                .to_owned(),
        };
        let path = format!("{}?watch=1&{from}", self.collection);
        Ok(self.ask_again(lane, "GET", &path, Bytes::new()).await?.into_body())
    }

    async fn all(&self) -> Result<Vec<Value>> {
        let (mut all, mut token) = (Vec::new(), None);
        loop {
            let page = self.page(0, token.as_deref()).await?;
            let mut read: Value = serde_json::from_slice(&page.body)?;
            if let Some(Value::Array(items)) = read.get_mut("items").map(Value::take) {
                all.extend(items);
            }
            match page.next {
                Some(next) => token = Some(next),
                None => return Ok(all),
            }
        }
    }
}

/// How long a busy server wants to be left alone, if that is its answer.
fn put_off(answer: &http::Response<Incoming>) -> Result<Option<Duration>> {
    let after = answer.headers().get(http::header::RETRY_AFTER);
    match after.filter(|_| answer.status() == StatusCode::TOO_MANY_REQUESTS) {
        Some(seconds) => Ok(Some(Duration::from_secs(seconds.to_str()?.parse()?))),
        None => Ok(None),
    }
}

/// The status of an answer, once all of it has come.
async fn status(answer: http::Response<Incoming>) -> Result<StatusCode> {
    let status = answer.status();
    answer.into_body().collect().await?;
    Ok(status)
}

async fn succeeded(
    method: &str,
    path: &str,
    answer: http::Response<Incoming>,
) -> Result<http::Response<Incoming>> {
    if !answer.status().is_success() {
        let status = answer.status();
        let said = answer.into_body().collect().await?.to_bytes();
        anyhow::bail!("{method} {path}: {status}: {}", String::from_utf8_lossy(&said));
    }
    Ok(answer)
}

fn revision(answer: &[u8]) -> Result<String> {
    let revision = object::text(answer, "resourceVersion").context("an answer without a revision")?;
    Ok(revision.to_owned())
}
