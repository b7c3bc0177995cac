//! Looks up the namespace of a request: its labels for selectors, the object for expressions.

use async_trait::async_trait;
use drydock_machinery::ApiError;
use drydock_server::admission::HostNamespaces;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

/// A source of namespaces.
#[async_trait]
pub trait NamespaceSource: Send + Sync + 'static {
    /// Returns the labels of a namespace, from the cache or from the host. Fails with 404 if it does not exist.
    async fn labels(&self, name: &str) -> Result<Map<String, Value>, ApiError>;
    /// Returns the namespace object from the host.
    async fn object(&self, name: &str) -> Result<Value, ApiError>;
}

/// The namespace of one request, fetched at most once, and only if it is used.
pub struct RequestNamespace<'a> {
    namespaces: &'a dyn NamespaceSource,
    name: &'a str,
    found: OnceCell<Value>,
}

impl<'a> RequestNamespace<'a> {
    /// Creates the look-up; `name` is empty if the request has no namespace.
    pub fn new(namespaces: &'a dyn NamespaceSource, name: &'a str) -> Self {
        Self { namespaces, name, found: OnceCell::new() }
    }

    /// Returns the namespace object; null if the request has none.
    pub async fn object(&self) -> Result<&Value, ApiError> {
        if self.name.is_empty() {
            return Ok(&Value::Null);
        }
        self.found.get_or_try_init(|| self.namespaces.object(self.name)).await
    }
}

#[async_trait]
impl NamespaceSource for HostNamespaces {
    async fn labels(&self, name: &str) -> Result<Map<String, Value>, ApiError> {
        let labels = match self.metadata(name) {
            Some(known) => known.metadata.labels.clone(),
            None => self.fetch(name).await?.metadata.labels,
        };
        Ok(labels.into_iter().flatten().map(|(key, value)| (key, Value::from(value))).collect())
    }

    async fn object(&self, name: &str) -> Result<Value, ApiError> {
        let mut namespace = self.fetch(name).await?;
        // As on the host: policies do not see managed fields and owner references (k8s.io/apiserver
        // pkg/admission/plugin/cel/condition.go, CreateNamespaceObject).
        namespace.metadata.managed_fields = None;
        namespace.metadata.owner_references = None;
        let mut shown = serde_json::to_value(&namespace).map_err(ApiError::internal)?;
        if let Value::Object(fields) = &mut shown {
            fields.retain(|field, _| !matches!(field.as_str(), "apiVersion" | "kind"));
        }
        Ok(shown)
    }
}
