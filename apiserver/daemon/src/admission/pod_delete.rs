//! Whoever writes an EvictionRequest must be allowed to delete its pod
//! (KEP-4563, EvictionRequest Validation on Admission: CREATE, UPDATE, DELETE).

use std::sync::Arc;

use async_trait::async_trait;
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{Admission, Attributes};
use drydock_server::authz::{self, Authorizer};

/// The check; it does not concern subresources, which have rules of RBAC of their own.
pub struct PodDelete {
    authorizer: Arc<Authorizer>,
}

impl PodDelete {
    /// Asks `authorizer`.
    pub fn new(authorizer: Arc<Authorizer>) -> Self {
        Self { authorizer }
    }
}

#[async_trait]
impl Admission for PodDelete {
    async fn admit(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let object = attributes.old.or(attributes.new);
        let Some(pod) = object.and_then(target_pod).filter(|_| attributes.subresource.is_empty()) else {
            return Ok(());
        };
        let question = authz::Attributes {
            verb: "delete".into(),
            version: "v1".into(),
            resource: "pods".into(),
            namespace: attributes.namespace.into(),
            name: pod.into(),
            ..authz::Attributes::default()
        };
        let decision = self.authorizer.authorize(attributes.caller, attributes.user, &question).await?;
        if decision.allowed {
            return Ok(());
        }
        let why = format!("user {:?} must be allowed to delete the target pod {pod:?}", attributes.user.name);
        Err(ApiError::forbidden(
            attributes.names.group,
            attributes.names.plural,
            attributes.object_name(),
            why,
        ))
    }
}

fn target_pod(object: &Object) -> Option<&str> {
    object.0.get("spec")?.get("target")?.get("pod")?.get("name")?.as_str()
}
