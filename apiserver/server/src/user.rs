//! Who asks.

use std::collections::BTreeMap;

/// An authenticated user (k8s.io/apiserver/pkg/authentication/user).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Unique among active users.
    pub name: String,
    /// Unique over time.
    pub uid: String,
    /// Groups that the user is in.
    pub groups: Vec<String>,
    /// Whatever else the authenticator tells, keys in lower case.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The group of everyone who is allowed everything.
pub const SYSTEM_MASTERS: &str = "system:masters";

/// What the name of a service account begins with.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
/// What the name of the group of all service accounts of one namespace begins with.
const SERVICE_ACCOUNTS_OF: &str = "system:serviceaccounts:";

impl User {
    /// Whether the user is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// The flow of the user: the unit by which shares, budgets and limits are counted. It is the user's name, or the
    /// group `system:serviceaccounts:NAMESPACE` for a service account: who may edit a namespace may create any number of
    /// accounts and tokens in it, so all of them together are one flow.
    pub fn flow(&self) -> &str {
        let is_namespace = |group: &&String| group.starts_with(SERVICE_ACCOUNTS_OF);
        match self.name.starts_with(SERVICE_ACCOUNT) {
            true => self.groups.iter().find(is_namespace).unwrap_or(&self.name),
            false => &self.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, groups: &[&str]) -> User {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        User { name: name.to_owned(), groups, ..User::default() }
    }

    #[test]
    fn the_service_accounts_of_a_namespace_are_one_flow() {
        let groups = ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"];
        for name in ["system:serviceaccount:shop:a", "system:serviceaccount:shop:b"] {
            assert_eq!(user(name, &groups).flow(), "system:serviceaccounts:shop");
        }
        assert_eq!(user("ann", &["system:authenticated"]).flow(), "ann");
    }
}
