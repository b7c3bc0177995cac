//! Whoever changes the status of an EvictionRequest needs the permission for what changes: as the interceptor whose entry
//! it is, or to say whose turn it is and how the request ends (`drydock_api::eviction_request::permissions`).
//!
//! A review is about a user, a namespace and an interceptor, never about an object: the authorizer remembers it.

use std::sync::Arc;

use async_trait::async_trait;
use drydock_api::eviction_request::interceptors::is_reserved;
use drydock_api::eviction_request::permissions::{ASSIGNMENT, INTERCEPTOR, Permission, needed};
use drydock_machinery::field::Path;
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{Admission, Attributes, Operation};
use drydock_server::auth::authz::{self, Authorizer};

/// The check. Writes to the object itself are looked at too: the managed fields that they bring may make somebody the
/// owner of what is in the status.
pub struct StatusPermission {
    authorizer: Arc<Authorizer>,
}

impl StatusPermission {
    /// Asks `authorizer`.
    pub fn new(authorizer: Arc<Authorizer>) -> Self {
        Self { authorizer }
    }

    async fn require(
        &self,
        attributes: &Attributes<'_>,
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
    async fn admit(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let Some(new) = attributes.new else { return Ok(()) };
        // A create has no status, but may bring managed fields of one.
        let nothing = Object::default();
        for (permission, field) in needed(new, attributes.old.unwrap_or(&nothing)) {
            self.require(attributes, permission, &field).await?;
        }
        Ok(())
    }
}

fn question(attributes: &Attributes<'_>, permission: Permission<'_>) -> authz::Attributes {
    let (subresource, namespace, name) = match permission {
        Permission::Assignment => (ASSIGNMENT, "", ""),
        // Whoever owns a namespace, with * on * in it, does not speak in the name of the cluster's own interceptors.
        Permission::Interceptor(name) if is_reserved(name) => (INTERCEPTOR, "", name),
        Permission::Interceptor(name) => (INTERCEPTOR, attributes.namespace, name),
    };
    // Nobody is granted to create what is not served.
    let verb = if attributes.operation == Operation::Create { "update" } else { attributes.verb };
    authz::Attributes {
        verb: verb.into(),
        group: attributes.names.group.into(),
        version: attributes.names.version.into(),
        resource: attributes.names.plural.into(),
        subresource: subresource.into(),
        namespace: namespace.into(),
        name: name.into(),
        ..authz::Attributes::default()
    }
}

/// As kube-apiserver words it (pkg/registry/resource/utils.go, AuthorizedForBinding).
fn requirement(question: &authz::Attributes, field: &Path) -> String {
    let authz::Attributes { verb, resource, subresource, name, .. } = question;
    let named = if name.is_empty() { String::new() } else { format!(", resourceName={name:?}") };
    format!(
        "changing {field} requires resource=\"{resource}/{subresource}\"{named}, verb={verb:?} permission"
    )
}

/// What an admin can do about it.
fn grant(question: &authz::Attributes, permission: Permission<'_>) -> String {
    let authz::Attributes { group, resource, subresource, namespace, .. } = question;
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
