//! The modes of impersonation, and what each asks the host
//! (KEP-5284, Constrained Impersonation; k8s.io/apiserver pkg/endpoints/filters/impersonation/mode.go).
//!
//! Every mode but the last asks whether the caller may do *this* as another user, and then which user. The last is the
//! older one: a caller who may act as a user may do everything that the user may.

use std::collections::BTreeMap;

use drydock_machinery::{ApiError, names};

use super::wanted;
use crate::auth::authz::AuthorizationAttributes;
use crate::request::user::{SYSTEM_MASTERS, User};

/// Group of the resources that only impersonation knows.
const AUTHENTICATION: &str = "authentication.k8s.io";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
const NODE: &str = "system:node:";
const NODES: &str = "system:nodes";
/// Where a service account's token names the node of its pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_KEYS: &str = "authentication.kubernetes.io/associated-node-keys";
/// If a user has at least this many groups or extras, the host is first asked about the right to all of them.
const MANY: usize = 4;

/// A mode of impersonation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpersonationMode {
    /// A service account as the node on which its pod runs.
    AssociatedNode,
    /// Any caller as a node.
    ArbitraryNode,
    /// Any caller as a service account.
    ServiceAccount,
    /// Any caller as a user that is neither.
    UserInfo,
    /// Any caller as any user, for everything.
    Legacy,
}

/// What a caller must be allowed: `all_at_once`, or otherwise each of `each`.
pub(super) struct ImpersonationCheck {
    pub(super) caller: User,
    pub(super) all_at_once: Option<AuthorizationAttributes>,
    pub(super) each: Vec<AuthorizationAttributes>,
}

impl ImpersonationMode {
    /// In the order in which they are tried.
    pub(super) const ALL: [Self; 5] =
        [Self::AssociatedNode, Self::ArbitraryNode, Self::ServiceAccount, Self::UserInfo, Self::Legacy];

    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    /// The verb that allows it, which the audit log shows unless the mode is the legacy one.
    pub fn verb(self) -> String {
        match self {
            Self::Legacy => "impersonate".to_owned(),
            mode => format!("impersonate:{}", mode.name()),
        }
    }

    /// Whether the mode applies to this caller and this wanted user.
    pub(super) fn applies(self, caller: &User, wanted: &User) -> bool {
        let bare = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let (node, account) = (node(&wanted.name), service_account(&wanted.name));
        match self {
            Self::AssociatedNode => {
                let own = caller.extra.get(NODE_NAME).map(Vec::as_slice);
                let runs_there = node.is_some_and(|node| own == Some(&[node.to_owned()]));
                bare && service_account(&caller.name).is_some() && runs_there
            }
            Self::ArbitraryNode => bare && node.is_some(),
            Self::ServiceAccount => bare && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }

    /// Returns what the caller must be allowed, in the order in which it is asked; 403 instead for a group or extra
    /// that this mode never allows.
    pub(super) fn questions(
        self,
        caller: &User,
        wanted: &User,
        request: &AuthorizationAttributes,
    ) -> Vec<Result<ImpersonationCheck, ApiError>> {
        let mut each = Vec::new();
        if self != Self::Legacy {
            let verb = format!("impersonate-on:{}:{}", self.name(), request.verb);
            each.push(AuthorizationAttributes { verb, ..request.clone() });
        }
        each.push(self.about_name(&wanted.name));
        if !wanted.uid.is_empty() {
            each.push(self.about(AUTHENTICATION, "uids", &wanted.uid));
        }
        let whoever = Ok(self.asked(caller, None, each));
        let (groups, extra) = (self.about_groups(caller, wanted), self.about_extra(caller, wanted));
        std::iter::once(whoever).chain(groups.transpose()).chain(extra.transpose()).collect()
    }

    /// The user that the caller acts as.
    pub(super) fn effective_user(self, wanted: User) -> User {
        let mut user = wanted;
        if self != Self::Legacy && node(&user.name).is_some() {
            user.groups = vec![NODES.to_owned()];
        }
        if let (Some((namespace, _)), true) = (service_account(&user.name), user.groups.is_empty()) {
            user.groups = vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")];
        }
        user
    }

    /// The check that `caller` may do this. In the mode [`Self::AssociatedNode`] the host gets the keys of the
    /// caller's extras without their values, which name the node, so that one answer holds for all nodes.
    fn asked(
        self,
        caller: &User,
        all_at_once: Option<AuthorizationAttributes>,
        each: Vec<AuthorizationAttributes>,
    ) -> ImpersonationCheck {
        let mut caller = caller.clone();
        if self == Self::AssociatedNode {
            let keys = caller.extra.into_keys().collect();
            caller.extra = BTreeMap::from([(NODE_KEYS.to_owned(), keys)]);
        }
        ImpersonationCheck { caller, all_at_once, each }
    }

    fn about(self, group: &str, resource: &str, name: &str) -> AuthorizationAttributes {
        AuthorizationAttributes {
            verb: self.verb(),
            group: group.to_owned(),
            version: "v1".to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..AuthorizationAttributes::default()
        }
    }

    /// The API group of users and groups in this mode.
    fn group(self) -> &'static str {
        if self == Self::Legacy { "" } else { AUTHENTICATION }
    }

    fn about_name(self, user: &str) -> AuthorizationAttributes {
        if let (Some((namespace, name)), group) = (service_account(user), self.group()) {
            let about = self.about(group, "serviceaccounts", name);
            return AuthorizationAttributes { namespace: namespace.to_owned(), ..about };
        }
        match node(user).filter(|_| self != Self::Legacy) {
            Some(_) if self == Self::AssociatedNode => self.about(AUTHENTICATION, "nodes", "*"),
            Some(node) => self.about(AUTHENTICATION, "nodes", node),
            None => self.about(self.group(), "users", user),
        }
    }

    fn about_groups(self, caller: &User, wanted: &User) -> Result<Option<ImpersonationCheck>, ApiError> {
        if wanted.groups.is_empty() {
            return Ok(None);
        }
        let about = |group: &str| self.about(self.group(), "groups", group);
        if self != Self::Legacy {
            if wanted.is_in("") {
                let why = "impersonating the empty string group is not allowed";
                return Err(about("").forbidden(caller, why));
            }
            if wanted.is_in(SYSTEM_MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(about(SYSTEM_MASTERS).forbidden(caller, why));
            }
        }
        let all = (self != Self::Legacy && wanted.groups.len() >= MANY).then(|| about("*"));
        Ok(Some(self.asked(caller, all, wanted.groups.iter().map(|group| about(group)).collect())))
    }

    fn about_extra(self, caller: &User, wanted: &User) -> Result<Option<ImpersonationCheck>, ApiError> {
        if wanted.extra.is_empty() {
            return Ok(None);
        }
        let about = |key: &str, value: &str| AuthorizationAttributes {
            subresource: key.to_owned(),
            ..self.about(AUTHENTICATION, "userextras", value)
        };
        if self != Self::Legacy {
            wanted::check_extra(&wanted.extra).map_err(|why| about("", "").forbidden(caller, &why))?;
        }
        let values = || wanted.extra.iter().flat_map(|(key, values)| values.iter().map(move |v| (key, v)));
        let many = wanted.extra.len() >= MANY || values().count() >= MANY;
        let all = (self != Self::Legacy && many).then(|| about("*", "*"));
        Ok(Some(self.asked(caller, all, values().map(|(key, value)| about(key, value)).collect())))
    }
}

/// Namespace and name of a service account, if the user name is well-formed as one.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let well_formed = names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    well_formed.then_some((namespace, name))
}

/// Name of a node, if the user name is well-formed as one's.
fn node(user: &str) -> Option<&str> {
    user.strip_prefix(NODE).filter(|name| names::dns1123_subdomain(name).is_empty())
}

#[cfg(test)]
#[path = "mode_tests.rs"]
mod tests;
