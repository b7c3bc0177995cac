//! How a contender is spoken to.

mod etcd;
mod http;

use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use bytes::Bytes;
use hyper::body::Incoming;
use serde_json::Value;

use crate::object::Api;

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

/// A list that was streamed to its end.
pub struct Listed {
    /// The body, in the pieces in which it came.
    pub body: Vec<Bytes>,
    /// From the request to the first byte of the body.
    pub first_byte: Duration,
}

/// Some connections to a contender. `lane` spreads clients over them.
#[async_trait(?Send)]
pub trait Client {
    /// The API of the objects.
    fn api(&self) -> &Api;
    /// Creates an object that must not exist.
    async fn create(&self, lane: usize, name: &str, object: Bytes) -> Result<()>;
    /// Applies a configuration.
    async fn apply(&self, lane: usize, name: &str, configuration: Bytes) -> Result<()>;
    /// The newest state of an object.
    async fn get(&self, lane: usize, name: &str) -> Result<Bytes>;
    /// The newest state of all objects, as one response.
    async fn list(&self) -> Result<Listed>;
    /// The newest revision.
    async fn revision(&self) -> Result<String>;
    /// A watch from a revision on: events of JSON, a line each.
    async fn watch(&self, lane: usize, revision: &str) -> Result<Incoming>;
    /// All objects, for comparing.
    async fn all(&self) -> Result<Vec<Value>>;
}
