//! A gRPC service of the tests, and a client that sends frames as they are.

use std::convert::Infallible;
use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Body;
use bytes::Bytes;
use drydock_server::grpc::{ResourceRead, Service};
use drydock_serving::request::user::User;
use futures::{StreamExt, stream};
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use hyper::body::Frame;
use tokio_util::task::AbortOnDropHandle;

use super::certificates::Identity;
use super::fixture::{Port, Settings};

pub const GET: &str = "/test.Gadgets/Get";
pub const WATCH: &str = "/test.Gadgets/Watch";
pub const PANIC: &str = "/test.Gadgets/Panic";
/// A stream whose second message comes after two minutes.
pub const LATER: &str = "/test.Gadgets/Later";

/// Reads the gadgets of the namespace that is the message, or of all.
struct Gadgets;

#[async_trait]
impl Service for Gadgets {
    fn name(&self) -> &'static str {
        "test.Gadgets"
    }

    fn is_streaming(&self, path: &str) -> Option<bool> {
        match path {
            GET | PANIC => Some(false),
            WATCH | LATER => Some(true),
            _ => None,
        }
    }

    fn reads(&self, path: &str, message: &[u8]) -> Result<Vec<ResourceRead>, tonic::Status> {
        let namespace =
            std::str::from_utf8(message).map_err(|_| tonic::Status::invalid_argument("not a text"))?;
        let read = |resource: &str, namespace: &str| ResourceRead {
            watch: path != GET && path != PANIC,
            group: "test.io".to_owned(),
            version: "v1".to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: if path == GET { "a".to_owned() } else { String::new() },
        };
        let gadgets = read("gadgets", namespace);
        // A stream of all namespaces reads another resource too.
        Ok(if namespace.is_empty() { vec![gadgets, read("clustergadgets", "")] } else { vec![gadgets] })
    }

    async fn call(&self, user: &User, request: Request<Body>) -> Response<Body> {
        let later = async { drop(tokio::time::timeout(LATE, std::future::pending::<()>()).await) };
        let one = stream::iter([Ok::<_, Infallible>(Frame::data(frame(user.name.as_bytes())))]);
        let ok = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
        let body = match request.uri().path() {
            WATCH => one.chain(stream::pending()).boxed(),
            LATER => one.chain(stream::once(later).map(|()| Ok(Frame::data(frame(b"two"))))).boxed(),
            PANIC => panic!("on purpose"),
            _ => one.chain(stream::iter([Ok(Frame::trailers(ok))])).boxed(),
        };
        let body = http_body_util::StreamBody::new(body);
        let response = Response::builder().header("content-type", "application/grpc");
        response.body(Body::new(body)).unwrap()
    }

    fn descriptors(&self) -> &'static [u8] {
        &[]
    }
}

const LATE: std::time::Duration = std::time::Duration::from_secs(120);

/// Settings with the service mounted.
pub fn mounted() -> Settings {
    Settings { service: Some(Arc::new(Gadgets)), ..Settings::default() }
}

/// A message with its prefix.
pub fn frame(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat().into()
}

/// A client over HTTP/2.
pub struct Client {
    requests: SendRequest<Bytes>,
    _connection: AbortOnDropHandle<()>,
}

/// An answer that has begun.
pub struct Answer {
    pub headers: HeaderMap,
    body: RecvStream,
}

impl Client {
    pub async fn connect(port: &Port, identity: Option<&Identity>) -> Self {
        let stream = port.connect(identity, "h2").await;
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        Self { requests, _connection: AbortOnDropHandle::new(connection) }
    }

    /// Sends a body with these headers beside those of gRPC.
    pub async fn send(&self, path: &str, body: Bytes, headers: &[(&str, &str)]) -> Answer {
        self.begin(path, body, true, headers).await.1
    }

    /// The same with a body of which more may follow.
    pub async fn open(
        &self,
        path: &str,
        body: Bytes,
        headers: &[(&str, &str)],
    ) -> (SendStream<Bytes>, Answer) {
        self.begin(path, body, false, headers).await
    }

    async fn begin(
        &self,
        path: &str,
        body: Bytes,
        is_whole: bool,
        headers: &[(&str, &str)],
    ) -> (SendStream<Bytes>, Answer) {
        let request = Request::post(format!("https://localhost{path}"));
        let mut request = request.header("content-type", "application/grpc").header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut requests = self.requests.clone().ready().await.unwrap();
        let (answer, mut sent) = requests.send_request(request.body(()).unwrap(), false).unwrap();
        // A server that has refused the call reads no more of it.
        let _ = sent.send_data(body, is_whole);
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "application/grpc");
        let (head, body) = answer.into_parts();
        (sent, Answer { headers: head.headers, body })
    }

    /// Calls a method with one message, by the token `good`.
    pub async fn call(&self, path: &str, message: &str) -> Answer {
        self.send(path, frame(message.as_bytes()), &[("authorization", "Bearer good")]).await
    }

    /// Sends a body, and returns the code and the message of the end.
    pub async fn ends(&self, path: &str, body: Bytes, headers: &[(&str, &str)]) -> (u16, String) {
        self.send(path, body, headers).await.end().await
    }
}

impl Answer {
    /// The next piece of the body; `None` at its end.
    pub async fn next(&mut self) -> Option<Bytes> {
        let data = self.body.data().await?.unwrap();
        self.body.flow_control().release_capacity(data.len()).unwrap();
        Some(data)
    }

    /// The next piece that is not empty: the end comes in an empty one.
    pub async fn message(&mut self) -> Option<Bytes> {
        while let Some(data) = self.next().await {
            if !data.is_empty() {
                return Some(data);
            }
        }
        None
    }

    /// The code and the message of the end, from the trailers or from an answer of trailers only.
    pub async fn end(&mut self) -> (u16, String) {
        while self.next().await.is_some() {}
        let trailers = self.body.trailers().await.unwrap();
        let of = trailers.as_ref().unwrap_or(&self.headers);
        let message = of.get("grpc-message").map_or("", |value| value.to_str().unwrap());
        (of["grpc-status"].to_str().unwrap().parse().unwrap(), message.replace("%20", " "))
    }
}
