//! The clients of the subjects.

mod connection;
mod etcd;
mod http;

use anyhow::Result;
use async_trait::async_trait;
use bytes::Bytes;
use hyper::body::Incoming;
use serde_json::Value;

use crate::object::ObjectApi;

pub use connection::ConnectionWindows;
pub use etcd::EtcdClient;
pub use http::HttpClient;

/// The files of a client: whom it trusts, who it is.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// CA of the server.
    pub ca: std::path::PathBuf,
    /// Our certificate.
    pub cert: std::path::PathBuf,
    /// Its key.
    pub key: std::path::PathBuf,
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug)]
pub enum WatchBeginning<'a> {
    /// Behind a revision.
    Revision(&'a str),
    /// With everything that there is, and a bookmark behind it (WatchList).
    InitialEvents,
}

/// A page of a list.
pub struct ReadPage {
    /// Its bytes.
    pub body: Bytes,
    /// The token of the next one.
    pub next: Option<String>,
}

/// Some connections to a subject. `lane` is the number of a client, by which clients are spread over them.
#[async_trait(?Send)]
pub trait SubjectClient {
    /// The API of the objects.
    fn api(&self) -> &ObjectApi;
    /// Creates an object that must not exist.
    async fn create(&self, lane: usize, name: &str, object: Bytes) -> Result<()>;
    /// Applies a configuration.
    async fn apply(&self, lane: usize, name: &str, configuration: Bytes) -> Result<()>;
    /// The newest state of an object.
    async fn get(&self, lane: usize, name: &str) -> Result<Bytes>;
    /// The revision of an object.
    async fn revision_of(&self, lane: usize, name: &str) -> Result<String>;
    /// Lets an object's status say `beat` (an annotation, where there is no status), if `revision` is its newest.
    /// The revision that this made; `None` if `revision` was stale.
    async fn swap(&self, lane: usize, name: &str, beat: u64, revision: &str) -> Result<Option<String>>;
    /// The newest state of all objects, as one response that streams.
    async fn list(&self, lane: usize) -> Result<Incoming>;
    /// A page of all objects, from a token on; the first without one.
    async fn page(&self, lane: usize, token: Option<&str>) -> Result<ReadPage>;
    /// The newest revision.
    async fn revision(&self) -> Result<String>;
    /// A watch: events of JSON, a line each.
    async fn watch(&self, lane: usize, from: WatchBeginning<'_>) -> Result<Incoming>;
    /// All objects, for comparing.
    async fn all(&self) -> Result<Vec<Value>>;
}
