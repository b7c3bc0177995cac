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

impl User {
    /// Whether the user is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}
