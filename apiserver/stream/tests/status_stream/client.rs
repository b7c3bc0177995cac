//! A client: it calls the service as the server does, reads gRPC frames, and keeps the state that the .proto file
//! describes.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use drydock_proto::status::v1alpha1::{
    self as api, WatchEvictionsRequest, WatchMaintenancesRequest, WatchNodesRequest, WatchOptions,
    watch_evictions_response, watch_maintenances_response, watch_nodes_response,
};
use drydock_stream::StatusStream;
use http_body_util::{BodyExt, Full};
use prost::Message;
use tonic::{Code, Status};

/// How long a test waits for a response before it fails. Not a measurement.
pub const RESPONSE_DEADLINE: Duration = Duration::from_secs(60);

/// The request of a Watch.
#[derive(Clone, Debug)]
pub enum Watch {
    Maintenances(WatchMaintenancesRequest),
    Nodes(WatchNodesRequest),
    Evictions(WatchEvictionsRequest),
}

/// The content of a response of any method.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    Updated(String, Bytes),
    Removed(String),
    Started,
    Complete,
    Heartbeat,
}

impl Watch {
    pub fn evictions(change: impl FnOnce(&mut WatchEvictionsRequest)) -> Self {
        let mut request = WatchEvictionsRequest::default();
        change(&mut request);
        Self::Evictions(request)
    }

    pub fn options(&mut self) -> &mut WatchOptions {
        let options = match self {
            Self::Maintenances(request) => &mut request.options,
            Self::Nodes(request) => &mut request.options,
            Self::Evictions(request) => &mut request.options,
        };
        options.get_or_insert_default()
    }

    pub fn after(mut self, token: &Bytes) -> Self {
        self.options().resume_token = token.clone();
        self
    }

    pub fn every(mut self, milliseconds: i32) -> Self {
        let nanos = milliseconds * 1_000_000;
        self.options().min_update_interval = Some(drydock_proto::prost_types::Duration { seconds: 0, nanos });
        self
    }

    pub fn call(&self) -> (&'static str, Vec<u8>) {
        match self {
            Self::Maintenances(request) => ("WatchMaintenances", request.encode_to_vec()),
            Self::Nodes(request) => ("WatchNodes", request.encode_to_vec()),
            Self::Evictions(request) => ("WatchEvictions", request.encode_to_vec()),
        }
    }

    fn read(&self, message: Bytes) -> (Bytes, Said) {
        match self {
            Self::Maintenances(_) => {
                use watch_maintenances_response::Event;
                let response = api::WatchMaintenancesResponse::decode(message).unwrap();
                let said = match response.event.unwrap() {
                    Event::Updated(updated) => {
                        Said::Updated(updated.name.clone(), updated.encode_to_vec().into())
                    }
                    Event::Removed(key) => Said::Removed(key.name),
                    Event::SnapshotStarted(_) => Said::Started,
                    Event::SnapshotComplete(_) => Said::Complete,
                    Event::Heartbeat(_) => Said::Heartbeat,
                };
                (response.resume_token, said)
            }
            Self::Nodes(_) => {
                use watch_nodes_response::Event;
                let response = api::WatchNodesResponse::decode(message).unwrap();
                let said = match response.event.unwrap() {
                    Event::Updated(updated) => {
                        Said::Updated(updated.name.clone(), updated.encode_to_vec().into())
                    }
                    Event::Removed(key) => Said::Removed(key.name),
                    Event::SnapshotStarted(_) => Said::Started,
                    Event::SnapshotComplete(_) => Said::Complete,
                    Event::Heartbeat(_) => Said::Heartbeat,
                };
                (response.resume_token, said)
            }
            Self::Evictions(_) => {
                use watch_evictions_response::Event;
                let response = api::WatchEvictionsResponse::decode(message).unwrap();
                let key = |namespace: &str, name: &str| format!("{namespace}/{name}");
                let said = match response.event.unwrap() {
                    Event::Updated(e) => Said::Updated(key(&e.namespace, &e.name), e.encode_to_vec().into()),
                    Event::Removed(e) => Said::Removed(key(&e.namespace, &e.name)),
                    Event::SnapshotStarted(_) => Said::Started,
                    Event::SnapshotComplete(_) => Said::Complete,
                    Event::Heartbeat(_) => Said::Heartbeat,
                };
                (response.resume_token, said)
            }
        }
    }
}

/// Calls a method with one message.
pub async fn call(
    stream: &StatusStream,
    user: &str,
    method: &str,
    message: &[u8],
) -> http::Response<tonic::body::Body> {
    stream.call(user, request(method, message), || {}).await
}

/// The request that calls a method with one message.
pub fn request(method: &str, message: &[u8]) -> http::Request<Full<Bytes>> {
    let mut body = BytesMut::new();
    body.put_u8(0);
    body.put_u32(u32::try_from(message.len()).unwrap());
    body.put(message);
    http::Request::post(format!("/drydock.status.v1alpha1.StatusService/{method}"))
        .header("content-type", "application/grpc")
        .body(Full::new(body.freeze()))
        .unwrap()
}

/// The one message of a unary call.
pub async fn get<T: Message + Default>(
    stream: &StatusStream,
    method: &str,
    request: &impl Message,
) -> Result<T, Status> {
    let response = call(stream, "tester", method, &request.encode_to_vec()).await;
    let mut frames = Frames::new(response)?;
    let message = frames.next().await?.expect("a message");
    assert!(frames.next().await?.is_none(), "more than one message");
    Ok(T::decode(message).unwrap())
}

/// Messages of a response.
pub struct Frames {
    body: tonic::body::Body,
    read: BytesMut,
}

impl Frames {
    /// The messages, or the status of an answer without a body.
    pub fn new(response: http::Response<tonic::body::Body>) -> Result<Self, Status> {
        match Status::from_header_map(response.headers()) {
            Some(status) if status.code() != Code::Ok => Err(status),
            _ => Ok(Self { body: response.into_body(), read: BytesMut::new() }),
        }
    }

    /// The next message; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            if let Some(mut head) = self.read.get(..5) {
                assert_eq!(head.get_u8(), 0, "compressed, and nobody asked for it");
                let length = usize::try_from(head.get_u32()).unwrap();
                if self.read.len() >= 5 + length {
                    self.read.advance(5);
                    return Ok(Some(self.read.split_to(length).freeze()));
                }
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            match frame.unwrap().into_data() {
                Ok(data) => self.read.put(data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap();
                    return match Status::from_header_map(&trailers) {
                        Some(status) if status.code() != Code::Ok => Err(status),
                        _ => Ok(None),
                    };
                }
            }
        }
    }
}

/// What a client keeps: the entities, and where to resume.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    pub entities: BTreeMap<String, Bytes>,
    pub token: Bytes,
    pub completed: usize,
    pub started: usize,
}

impl Kept {
    /// As the .proto file says: messages replace by key.
    pub fn take(&mut self, token: Bytes, said: Said) {
        self.token = token;
        match said {
            Said::Updated(key, message) => drop(self.entities.insert(key, message)),
            Said::Removed(key) => drop(self.entities.remove(&key)),
            Said::Started => {
                self.entities.clear();
                self.started += 1;
            }
            Said::Complete => self.completed += 1,
            Said::Heartbeat => {}
        }
    }
}

/// A stream that is read.
pub struct Client {
    watch: Watch,
    frames: Frames,
    pub kept: Kept,
}

impl Client {
    pub async fn open(stream: &StatusStream, watch: &Watch) -> Result<Self, Status> {
        Self::resume(stream, watch, Kept::default()).await
    }

    /// Resumes with the state that was kept.
    pub async fn resume(stream: &StatusStream, watch: &Watch, kept: Kept) -> Result<Self, Status> {
        Self::of_user(stream, "tester", watch, kept).await
    }

    pub async fn of_user(
        stream: &StatusStream,
        user: &str,
        watch: &Watch,
        kept: Kept,
    ) -> Result<Self, Status> {
        let watch = watch.clone().after(&kept.token);
        let (method, message) = watch.call();
        let frames = Frames::new(call(stream, user, method, &message).await)?;
        Ok(Self { watch, frames, kept })
    }

    /// Reads the next response without applying it.
    pub async fn read(&mut self) -> (Bytes, Said) {
        let message =
            tokio::time::timeout(RESPONSE_DEADLINE, self.frames.next()).await.expect("a response comes");
        self.watch.read(message.unwrap().expect("the stream goes on"))
    }

    /// The next response that is not a heartbeat.
    pub async fn said(&mut self) -> Said {
        tokio::time::timeout(RESPONSE_DEADLINE, self.said_at_last()).await.expect("more than heartbeats")
    }

    async fn said_at_last(&mut self) -> Said {
        loop {
            let (token, said) = self.read().await;
            self.kept.take(token, said.clone());
            if said != Said::Heartbeat {
                return said;
            }
        }
    }

    /// The next response in words.
    pub async fn words(&mut self) -> String {
        match self.said().await {
            Said::Updated(key, _) => format!("+{key}"),
            Said::Removed(key) => format!("-{key}"),
            Said::Started => "started".to_owned(),
            Said::Complete => "complete".to_owned(),
            Said::Heartbeat => "heartbeat".to_owned(),
        }
    }

    /// The next responses up to and including the marker, in words.
    pub async fn until_complete(&mut self) -> Vec<String> {
        let mut words = vec![self.words().await];
        while words.last().is_some_and(|last| last != "complete") {
            words.push(self.words().await);
        }
        words
    }

    /// The status that ends the stream.
    pub async fn end(&mut self) -> Status {
        loop {
            match self.frames.next().await {
                Ok(Some(_)) => {}
                Ok(None) => return Status::ok(""),
                Err(status) => return status,
            }
        }
    }
}
