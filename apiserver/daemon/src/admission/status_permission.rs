//! A user who changes the status of an EvictionRequest needs a permission for each changed part: that of the
//! interceptor whose entry it is, or that to assign interceptors and to end the request
//! (`drydock_api::eviction_request::permissions`).
//!
//! A review is about a user, a namespace and an interceptor, not about an object, so that the authorizer can cache it.

use std::sync::Arc;

use async_trait::async_trait;
use drydock_api::eviction_request::interceptors::is_reserved;
use drydock_api::eviction_request::permissions::{ASSIGNMENT, INTERCEPTOR, Permission, needed};
use drydock_machinery::field::Path;
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{Admission, AdmissionAttributes, AdmissionOperation};
use drydock_serving::auth::authz::{AuthorizationAttributes, Authorizer};

/// The admission check. It also checks writes to the main resource, because their managed fields may make a manager the
/// owner of fields in the status.
pub struct StatusPermission {
    authorizer: Arc<Authorizer>,
}

impl StatusPermission {
    /// Creates the check, which asks `authorizer`.
    pub fn new(authorizer: Arc<Authorizer>) -> Self {
        Self { authorizer }
    }

    async fn require(
        &self,
        attributes: &AdmissionAttributes<'_>,
        permission: Permission<'_>,
        field: &Path,
    ) -> Result<(), ApiError> {
        let question = question(attributes, permission);
        let decision = self.authorizer.authorize(attributes.caller, attributes.user, &question).await?;
        if decision.allowed {
            return Ok(());
        }
        let mut why = format!("{}: {}", requirement(&question, field), question.denial(attributes.user));
        if !decision.reason.is_empty() {
            why = format!("{why}: {}", decision.reason);
        }
        Err(attributes.forbidden(format_args!("{why}; {}", grant(&question, permission))))
    }
}

#[async_trait]
impl Admission for StatusPermission {
    async fn admit(&self, attributes: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        let Some(new) = attributes.new else { return Ok(()) };
        // A created object has no status, but its managed fields may own fields of one.
        let nothing = Object::default();
        for (permission, field) in needed(new, attributes.old.unwrap_or(&nothing)) {
            self.require(attributes, permission, &field).await?;
        }
        Ok(())
    }
}

fn question(attributes: &AdmissionAttributes<'_>, permission: Permission<'_>) -> AuthorizationAttributes {
    let (subresource, namespace, name) = match permission {
        Permission::Assignment => (ASSIGNMENT, "", ""),
        // Checked in the whole cluster: the owner of a namespace, with * on * in it, may not write for the interceptors
        // of the cluster.
        Permission::Interceptor(name) if is_reserved(name) => (INTERCEPTOR, "", name),
        Permission::Interceptor(name) => (INTERCEPTOR, attributes.namespace, name),
    };
    // No role grants `create` for a subresource that is not served.
    let verb = if attributes.operation == AdmissionOperation::Create { "update" } else { attributes.verb };
    AuthorizationAttributes {
        verb: verb.into(),
        group: attributes.names.group.into(),
        version: attributes.names.version.into(),
        resource: attributes.names.plural.into(),
        subresource: subresource.into(),
        namespace: namespace.into(),
        name: name.into(),
        ..AuthorizationAttributes::default()
    }
}

/// Returns the requirement in kube-apiserver's words (pkg/registry/resource/utils.go, AuthorizedForBinding).
fn requirement(question: &AuthorizationAttributes, field: &Path) -> String {
    let AuthorizationAttributes { verb, resource, subresource, name, .. } = question;
    let named = if name.is_empty() { String::new() } else { format!(", resourceName={name:?}") };
    format!(
        "changing {field} requires resource=\"{resource}/{subresource}\"{named}, verb={verb:?} permission"
    )
}

/// Returns how an administrator can grant the permission.
fn grant(question: &AuthorizationAttributes, permission: Permission<'_>) -> String {
    let AuthorizationAttributes { group, resource, subresource, namespace, .. } = question;
    let rule = format!("--verb=update,patch --resource={resource}.{group}/{subresource}");
    match permission {
        Permission::Assignment => format!(
            "kubectl create clusterrole evictionrequest-assignment {rule} and a ClusterRoleBinding grant it"
        ),
        Permission::Interceptor(name) if namespace.is_empty() => format!(
            "kubectl create clusterrole {name} {rule} --resource-name={name} and a ClusterRoleBinding grant it"
        ),
        Permission::Interceptor(name) => format!(
            "kubectl create role {name} --namespace={namespace} {rule} --resource-name={name} and a RoleBinding grant it"
        ),
    }
}

#[cfg(test)]
#[path = "status_permission_tests.rs"]
mod tests;
