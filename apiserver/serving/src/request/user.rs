//! Who asks: the user, and the network of a client without one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

/// An authenticated user (k8s.io/apiserver/pkg/authentication/user).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Unique among active users.
    pub name: String,
    /// Unique over time.
    pub uid: String,
    /// Groups that the user is in.
    pub groups: Vec<String>,
    /// Extra attributes of the authenticator, keys in lower case.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The group whose users are allowed everything.
pub const SYSTEM_MASTERS: &str = "system:masters";

/// The name of a user without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of users without credentials.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// What the name of a service account begins with.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
/// What the name of the group of all service accounts of one namespace begins with.
const SERVICE_ACCOUNTS_OF: &str = "system:serviceaccounts:";

/// Users that the host's own components run as. The garbage collector and the namespace and quota controllers run as
/// one of them, or as service accounts of kube-system.
const HOST_COMPONENTS: [&str; 3] =
    ["system:kube-aggregator", "system:aggregator", "system:kube-controller-manager"];
/// The group of the service accounts of kube-system.
const KUBE_SYSTEM: &str = "system:serviceaccounts:kube-system";

impl User {
    /// Whether the user is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Whether the user is anonymous, or acts as the anonymous user.
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS || self.is_in(UNAUTHENTICATED)
    }

    /// Whether the user is one of the host's own components.
    pub fn is_host_component(&self) -> bool {
        !self.is_anonymous() && (HOST_COMPONENTS.contains(&self.name.as_str()) || self.is_in(KUBE_SYSTEM))
    }

    /// Whether `other` is the same user, in the same groups. The order of groups does not matter, nor do extras: some
    /// authenticators give them other values for each request.
    pub fn is_same(&self, other: &User) -> bool {
        let groups = |user: &User| user.groups.iter().cloned().collect::<BTreeSet<String>>();
        self.name == other.name && self.uid == other.uid && groups(self) == groups(other)
    }

    /// Bytes of everything that is known of the user.
    pub fn bytes(&self) -> usize {
        let list =
            |texts: &[String]| texts.iter().map(|text| size_of::<String>() + text.len()).sum::<usize>();
        let extra = self.extra.iter().map(|(key, values)| key.len() + list(values)).sum::<usize>();
        self.name.len() + self.uid.len() + list(&self.groups) + extra
    }

    /// The flow of the user: the unit by which shares, budgets and limits are counted. It is the user's name, or the
    /// group `system:serviceaccounts:NAMESPACE` for a service account: a user that may edit a namespace may create any
    /// number of accounts and tokens in it, so all of them together are one flow.
    pub fn flow(&self) -> &str {
        let is_namespace = |group: &&String| group.starts_with(SERVICE_ACCOUNTS_OF);
        match self.name.starts_with(SERVICE_ACCOUNT) {
            true => self.groups.iter().find(is_namespace).unwrap_or(&self.name),
            false => &self.name,
        }
    }
}

/// The bits of an IPv6 address that name its network.
const IPV6_NETWORK: u128 = !0 << 64;

/// An IPv4 address, or the /64 network of an IPv6 address, of which a host has all addresses. Many hosts share one
/// behind a masquerading NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network(IpAddr);

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & IPV6_NETWORK).into(),
            address => address,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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

    fn network(address: &str) -> Network {
        address.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn a_host_has_one_network_whichever_of_its_addresses_it_uses() {
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::9"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
        assert_ne!(network("10.0.0.1"), network("10.0.0.2"));
    }
}
