//! The namespace of a request: its labels for selectors, itself for expressions.

use async_trait::async_trait;
use drydock_machinery::ApiError;
use drydock_server::admission::HostNamespaces;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

/// Where namespaces are looked up.
#[async_trait]
pub trait Namespaces: Send + Sync + 'static {
    /// Labels of a namespace: what is known of it, or else what the host says. 404 if there is none.
    async fn labels(&self, name: &str) -> Result<Map<String, Value>, ApiError>;
    /// The namespace itself, from the host.
    async fn object(&self, name: &str) -> Result<Value, ApiError>;
}

/// The namespace of one request, asked for once, and only if something looks at it.
pub struct OfRequest<'a> {
    namespaces: &'a dyn Namespaces,
    name: &'a str,
    found: OnceCell<Value>,
}

impl<'a> OfRequest<'a> {
    /// Of this name, which is empty where a request has none.
    pub fn new(namespaces: &'a dyn Namespaces, name: &'a str) -> Self {
        Self { namespaces, name, found: OnceCell::new() }
    }

    /// The namespace itself; null where the request has none.
    pub async fn object(&self) -> Result<&Value, ApiError> {
        if self.name.is_empty() {
            return Ok(&Value::Null);
        }
        self.found.get_or_try_init(|| self.namespaces.object(self.name)).await
    }
}

#[async_trait]
impl Namespaces for HostNamespaces {
    async fn labels(&self, name: &str) -> Result<Map<String, Value>, ApiError> {
        let labels = match self.metadata(name) {
            Some(known) => known.metadata.labels.clone(),
            None => self.fetch(name).await?.metadata.labels,
        };
        Ok(labels.into_iter().flatten().map(|(key, value)| (key, Value::from(value))).collect())
    }

    async fn object(&self, name: &str) -> Result<Value, ApiError> {
        let mut namespace = self.fetch(name).await?;
        // As the host shows it: who owns which field, and who owns it, is no concern of a policy
        // (k8s.io/apiserver pkg/admission/plugin/cel/condition.go, CreateNamespaceObject).
        namespace.metadata.managed_fields = None;
        namespace.metadata.owner_references = None;
        let mut shown = serde_json::to_value(&namespace).map_err(ApiError::internal)?;
        if let Value::Object(fields) = &mut shown {
            fields.retain(|field, _| !matches!(field.as_str(), "apiVersion" | "kind"));
        }
        Ok(shown)
    }
}
