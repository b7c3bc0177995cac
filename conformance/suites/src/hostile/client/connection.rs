//! One HTTP/2 connection of one user.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;

use super::request::retry_after;
use super::{ServerEndpoint, UserRequest, UserResponse};

/// A body of a request, whole or made while it is sent.
pub type StreamedBody = BoxBody<Bytes, Infallible>;

/// For how long a request is retried that a busy server refuses with Retry-After: client-go tries it ten times, which a busy
/// machine needs longer for.
const RETRIED_FOR: Duration = Duration::from_secs(120);
/// The pause before a request is repeated whose answer decided nothing.
const UNDECIDED_PAUSE: Duration = Duration::from_secs(1);

/// How much a server may send before the client has read it, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct FlowWindows {
    /// On one stream.
    pub stream: u32,
    /// On all.
    pub connection: u32,
}

impl FlowWindows {
    /// Those of client-go (golang.org/x/net/http2).
    pub const USUAL: FlowWindows = FlowWindows { stream: 4 << 20, connection: 1 << 30 };
    /// A stream's window of 0 bytes, so that every answer waits.
    pub const NONE: FlowWindows = FlowWindows { stream: 0, connection: 65_535 };
}

/// One HTTP/2 connection of one user.
#[derive(Clone)]
pub struct UserConnection {
    sender: SendRequest<StreamedBody>,
    authority: String,
    token: Option<String>,
}

impl UserConnection {
    /// Opens it from an address of loopback; requests carry the token.
    pub async fn open(
        endpoint: &ServerEndpoint,
        from: Ipv4Addr,
        token: Option<&str>,
        windows: FlowWindows,
    ) -> Result<UserConnection> {
        let stream = endpoint.http2(from).await?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(windows.stream)
            .initial_connection_window_size(windows.connection)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(connection);
        Ok(UserConnection { sender, authority: endpoint.authority(), token: token.map(str::to_owned) })
    }

    /// Sends a request and returns when its answer begins.
    pub async fn send(&self, ask: &UserRequest) -> Result<Response<Incoming>> {
        self.send_body(ask, Full::new(ask.body.clone()).boxed()).await
    }

    /// The same with another body.
    pub async fn send_body(&self, ask: &UserRequest, body: StreamedBody) -> Result<Response<Incoming>> {
        let uri = format!("https://{}{}", self.authority, ask.path);
        let mut request = http::Request::builder().method(ask.method.clone()).uri(uri);
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in &ask.headers {
            request = request.header(name, value);
        }
        let mut sender = self.sender.clone();
        sender.ready().await?;
        Ok(sender.send_request(request.body(body)?).await?)
    }

    /// Sends a request and reads its answer, whatever it is.
    pub async fn ask(&self, ask: &UserRequest) -> Result<UserResponse> {
        UserResponse::read(self.send(ask).await?).await
    }

    /// Sends a request, with retries after Retry-After as client-go makes them, and returns when its answer begins.
    pub async fn send_again(&self, ask: &UserRequest) -> Result<Response<Incoming>> {
        let began = Instant::now();
        while began.elapsed() < RETRIED_FOR {
            let answer = self.send(ask).await?;
            let Some(pause) = retry_after(answer.status(), answer.headers()) else { return Ok(answer) };
            // A body that is not read to its end would be reset.
            answer.into_body().collect().await?;
            tokio::time::sleep(pause.max(Duration::from_millis(1))).await;
        }
        self.send(ask).await
    }

    /// The same, and reads the answer.
    pub async fn ask_again(&self, ask: &UserRequest) -> Result<UserResponse> {
        UserResponse::read(self.send_again(ask).await?).await
    }

    /// The same, and again until the answer decides something. A request that was made before it was repeated has succeeded.
    pub async fn decided(&self, ask: &UserRequest) -> Result<UserResponse> {
        let began = Instant::now();
        let mut answer = self.ask_again(ask).await?;
        if !answer.is_undecided() {
            return Ok(answer);
        }
        while answer.is_undecided() && began.elapsed() < RETRIED_FOR {
            tokio::time::sleep(UNDECIDED_PAUSE).await;
            answer = self.ask_again(ask).await?;
        }
        match (&ask.method, answer.code) {
            (&Method::POST, StatusCode::CONFLICT) => self.ask_again(&UserRequest::get(ask.created()?)).await,
            (&Method::DELETE, StatusCode::NOT_FOUND) => Ok(UserResponse { code: StatusCode::OK, ..answer }),
            _ => Ok(answer),
        }
    }

    /// Sends a request that has to succeed, and returns the object in its answer.
    pub async fn done(&self, ask: &UserRequest) -> Result<Value> {
        let answer = self.decided(ask).await.with_context(|| format!("{} {}", ask.method, ask.path))?;
        ensure!(answer.code.is_success(), "{} {}: {}", ask.method, ask.path, answer.summary());
        Ok(answer.json())
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}
