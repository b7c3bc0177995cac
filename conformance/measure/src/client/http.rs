//! A Kubernetes API over HTTP/2, with the windows of client-go (golang.org/x/net/http2: 4 MiB a stream, 1 GiB a
//! connection).

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Client, Credentials, Listed};
use crate::object::Api;

const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;
const PAGE: usize = 5000;
const AGENT: &str = "bench";

/// Some connections to an API server.
pub struct HttpClient {
    api: Api,
    collection: String,
    authority: String,
    lanes: Vec<SendRequest<Full<Bytes>>>,
}

impl HttpClient {
    /// Opens the connections to a port on loopback.
    pub async fn connect(port: u16, credentials: &Credentials, api: Api, lanes: usize) -> Result<Self> {
        let tls = TlsConnector::from(Arc::new(client_config(credentials)?));
        let mut connections = Vec::with_capacity(lanes);
        for _ in 0..lanes {
            connections.push(open(&tls, port).await?);
        }
        let authority = format!("127.0.0.1:{port}");
        Ok(Self { api, collection: api.collection(), authority, lanes: connections })
    }

    /// A document.
    pub async fn read(&self, path: &str) -> Result<Bytes> {
        let answer = self.ask(0, "GET", path, Bytes::new()).await?;
        Ok(answer.into_body().collect().await?.to_bytes())
    }

    async fn ask(
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
        let mut sender = self.lanes[lane % self.lanes.len()].clone();
        sender.ready().await?;
        let answer = sender.send_request(request.body(Full::new(body))?).await?;
        if !answer.status().is_success() {
            let status = answer.status();
            let said = answer.into_body().collect().await?.to_bytes();
            anyhow::bail!("{method} {path}: {status}: {}", String::from_utf8_lossy(&said));
        }
        Ok(answer)
    }

    async fn page(&self, token: &str) -> Result<Value> {
        let path = format!("{}?limit={PAGE}&continue={token}", self.collection);
        Ok(serde_json::from_slice(&self.read(&path).await?)?)
    }
}

#[async_trait(?Send)]
impl Client for HttpClient {
    fn api(&self) -> &Api {
        &self.api
    }

    async fn create(&self, lane: usize, _: &str, object: Bytes) -> Result<()> {
        let answer = self.ask(lane, "POST", &self.collection, object).await?;
        ensure!(answer.status() == http::StatusCode::CREATED, "a create was answered {}", answer.status());
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

    async fn list(&self) -> Result<Listed> {
        let began = Instant::now();
        let mut answer = self.ask(0, "GET", &self.collection, Bytes::new()).await?.into_body();
        let (mut body, mut first_byte) = (Vec::new(), None);
        while let Some(frame) = answer.frame().await {
            if let Ok(data) = frame?.into_data() {
                first_byte.get_or_insert_with(|| began.elapsed());
                body.push(data);
            }
        }
        Ok(Listed { body, first_byte: first_byte.context("an empty list")? })
    }

    async fn revision(&self) -> Result<String> {
        let page: Value = serde_json::from_slice(&self.read(&format!("{}?limit=1", self.collection)).await?)?;
        let revision = page["metadata"]["resourceVersion"].as_str().context("a list without a revision")?;
        Ok(revision.to_owned())
    }

    async fn watch(&self, lane: usize, revision: &str) -> Result<Incoming> {
        let path = format!("{}?watch=1&resourceVersion={revision}", self.collection);
        Ok(self.ask(lane, "GET", &path, Bytes::new()).await?.into_body())
    }

    async fn all(&self) -> Result<Vec<Value>> {
        let (mut all, mut token) = (Vec::new(), String::new());
        loop {
            let mut page = self.page(&token).await?;
            if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
                all.extend(items);
            }
            match page["metadata"]["continue"].as_str().filter(|t| !t.is_empty()) {
                Some(next) => token = next.to_owned(),
                None => return Ok(all),
            }
        }
    }
}

fn client_config(credentials: &Credentials) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&credentials.ca)? {
        roots.add(certificate?)?;
    }
    let chain = CertificateDer::pem_file_iter(&credentials.cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&credentials.key)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

async fn open(tls: &TlsConnector, port: u16) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let stream = tls.connect(ServerName::try_from("127.0.0.1")?, stream).await?;
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(1 << 20)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::spawn(connection);
    Ok(sender)
}
