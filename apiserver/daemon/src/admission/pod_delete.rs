//! A user who writes an EvictionRequest must be allowed to delete its pod (KEP-4563, EvictionRequest Validation on
//! Admission: CREATE, UPDATE, DELETE).

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{Admission, AdmissionAttributes};
use drydock_serving::auth::Caller;
use drydock_serving::auth::authz::{AuthorizationAttributes, Authorizer};
use drydock_serving::request::user::User;

/// The admission check. It skips subresources, for which RBAC has rules of their own.
pub struct PodDelete {
    authorizer: Arc<Authorizer>,
    unnamed: UnnamedReviewUsers,
}

/// Users and groups for whom the host is asked once for all pods of a namespace, and for single pods only if that is
/// denied. For all other users it is asked for each pod, because an authorizer may deny a single pod while it allows
/// pods in general.
pub struct UnnamedReviewUsers(HashSet<String>);

impl UnnamedReviewUsers {
    /// Creates the set from names of users and groups.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().filter(|name| !name.is_empty()).collect())
    }

    fn include(&self, user: &User) -> bool {
        self.0.contains(&user.name) || user.groups.iter().any(|group| self.0.contains(group))
    }
}

impl PodDelete {
    /// Creates the check, which asks `authorizer`.
    pub fn new(authorizer: Arc<Authorizer>, unnamed: UnnamedReviewUsers) -> Self {
        Self { authorizer, unnamed }
    }

    async fn may_delete(
        &self,
        caller: &Caller,
        user: &User,
        namespace: &str,
        pod: &str,
    ) -> Result<bool, ApiError> {
        let ask = async |name: &str| {
            let question = AuthorizationAttributes {
                verb: "delete".into(),
                version: "v1".into(),
                resource: "pods".into(),
                namespace: namespace.into(),
                name: name.into(),
                ..AuthorizationAttributes::default()
            };
            self.authorizer.authorize(caller, user, &question).await
        };
        if self.unnamed.include(user) && ask("").await?.allowed {
            return Ok(true);
        }
        Ok(ask(pod).await?.allowed)
    }
}

#[async_trait]
impl Admission for PodDelete {
    async fn admit(&self, attributes: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        if !attributes.subresource.is_empty() {
            return Ok(());
        }
        let object = attributes.old.or(attributes.new);
        let unreadable = || ApiError::internal("an EvictionRequest without a name of its target pod");
        let pod = object.and_then(target_pod).ok_or_else(unreadable)?;
        let AdmissionAttributes { caller, user, namespace, .. } = *attributes;
        if self.may_delete(caller, user, namespace, pod).await? {
            return Ok(());
        }
        let name = &user.name;
        Err(attributes
            .forbidden_object(format!("user {name:?} must be allowed to delete the target pod {pod:?}")))
    }
}

fn target_pod(object: &Object) -> Option<&str> {
    object.0.get("spec")?.get("target")?.get("pod")?.get("name")?.as_str()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::admission::asked::{Asked, CONTROLLER, caller, host};

    const KUBE_SYSTEM: &str = "system:serviceaccounts:kube-system";

    fn check(rule: fn(&str, &str) -> bool) -> (PodDelete, Asked) {
        let (authorizer, asked) = host(rule);
        (PodDelete::new(authorizer, UnnamedReviewUsers::new([KUBE_SYSTEM.to_owned()])), asked)
    }

    async fn may(check: &PodDelete, user: &str, groups: &[&str], pods: &[&str]) -> Vec<bool> {
        let caller = caller(user, groups);
        let mut may = Vec::new();
        for pod in pods {
            may.push(check.may_delete(&caller, &caller.user, "ns", pod).await.unwrap());
        }
        may
    }

    /// Regression: the namespace controller deletes every request of a namespace, and a review for each delayed
    /// everything that waited for that.
    #[tokio::test]
    async fn the_host_is_asked_once_for_a_namespace_about_those_who_empty_it() {
        let (check, asked) = check(|_, _| true);
        let may = may(&check, "system:serviceaccount:kube-system:x", &[KUBE_SYSTEM], &["a", "b", "c"]).await;
        assert_eq!((may, asked.names()), (vec![true; 3], vec![String::new()]));
    }

    #[tokio::test]
    async fn the_host_is_asked_once_about_our_controllers() {
        let (check, asked) = check(|_, _| true);
        assert_eq!(may(&check, CONTROLLER, &[], &["a", "b", "c"]).await, [true; 3]);
        assert_eq!((asked.names(), asked.all()[0]["namespace"].is_null()), (vec![String::new()], true));
    }

    #[tokio::test]
    async fn where_that_is_denied_it_is_asked_by_name() {
        let (check, asked) = check(|_, pod| pod == "b");
        assert_eq!(may(&check, "x", &[KUBE_SYSTEM], &["a", "b"]).await, [false, true]);
        assert_eq!(asked.names(), ["", "a", "b"]);
    }

    #[tokio::test]
    async fn an_authorizer_that_denies_one_pod_is_heard_about_everybody_else() {
        let (check, asked) = check(|_, pod| pod != "a");
        assert_eq!(may(&check, "ann", &["system:authenticated"], &["a", "b"]).await, [false, true]);
        assert_eq!(asked.names(), ["a", "b"]);
    }
}
