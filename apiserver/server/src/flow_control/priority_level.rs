//! Priority levels: which guaranteed share of the server a user draws on.

use std::collections::HashSet;

use drydock_serving::request::user::{SYSTEM_MASTERS, User};

/// A class of users with a guaranteed share of the seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PriorityLevel {
    /// Group system:masters: takes no seat and waits in no queue. The bounds on a single request hold for it too.
    Exempt,
    /// The host's own components.
    System,
    /// The users of --controller-users.
    Controllers,
    /// Every other user.
    Everybody,
    /// Users that showed no credentials.
    Anonymous,
}

/// The levels that share the seats, higher ones first.
pub const LIMITED: [PriorityLevel; 4] =
    [PriorityLevel::System, PriorityLevel::Controllers, PriorityLevel::Everybody, PriorityLevel::Anonymous];

/// What depends on the level:
///
/// | | seats and queues | [quota](Self::is_bound_by_quota) | [size](Self::is_bound_by_size) | [body budget](Self::waits_for_room) | [fencing tokens](Self::has_fencing_tokens) | [share of the history](super::ReplacedBytes) | [reserve of the store](Self::is_of_cluster) | [rate of reviews](drydock_serving::auth::review) | [general reviews](Self::is_asked_in_general) |
/// |---|---|---|---|---|---|---|---|---|---|
/// | exempt | no | no | yes | no | yes | no | yes | no | none |
/// | system | yes | yes | yes | its own part | no | no | yes | no | no |
/// | controllers | yes | no | no | its own part | yes | no | yes | no | yes |
/// | everybody | yes | yes | yes | yes | no | yes | no | yes | no |
/// | anonymous | yes | yes | yes | yes | no | yes | no | yes | no |
impl PriorityLevel {
    /// Whether writes that make an object larger are refused when a namespace's quota is used up.
    pub fn is_bound_by_quota(self) -> bool {
        !matches!(self, Self::Exempt | Self::Controllers)
    }

    /// Whether an object may not become larger than its kind allows.
    pub fn is_bound_by_size(self) -> bool {
        self != Self::Controllers
    }

    /// Whether the user is a component of the cluster or its administrator, whom a store without space refuses last.
    pub fn is_of_cluster(self) -> bool {
        matches!(self, Self::Exempt | Self::System | Self::Controllers)
    }

    /// Whether requests wait for room in a [budget](crate::flow_control::fair_budget) of memory or threads.
    pub fn waits_for_room(self) -> bool {
        self != Self::Exempt
    }

    /// Whether it has a part of each budget to itself.
    pub fn has_own_room(self) -> bool {
        matches!(self, Self::System | Self::Controllers)
    }

    /// Whether writes may carry a [fencing token](crate::handlers::fencing).
    pub fn has_fencing_tokens(self) -> bool {
        matches!(self, Self::Exempt | Self::Controllers)
    }

    /// Whether the host's authorizer is trusted to deny nothing by name that it allows in general
    /// ([`Authorizer::asking_in_general`](drydock_serving::auth::authz::Authorizer::asking_in_general)).
    pub fn is_asked_in_general(self) -> bool {
        self == Self::Controllers
    }

    /// The name in metrics, label `priority_level`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exempt => "exempt",
            Self::System => "system",
            Self::Controllers => "controllers",
            Self::Everybody => "everybody",
            Self::Anonymous => "anonymous",
        }
    }
}

/// Decides the priority level of a user.
#[derive(Clone, Debug, Default)]
pub struct PriorityLevels {
    controllers: HashSet<String>,
}

impl PriorityLevels {
    /// `controllers` are the names of the users of the level [`PriorityLevel::Controllers`].
    pub fn new(controllers: impl IntoIterator<Item = String>) -> Self {
        Self { controllers: controllers.into_iter().collect() }
    }

    /// The level of `user`.
    pub fn of(&self, user: &User) -> PriorityLevel {
        if user.is_in(SYSTEM_MASTERS) {
            PriorityLevel::Exempt
        } else if user.is_anonymous() {
            PriorityLevel::Anonymous
        } else if self.controllers.contains(&user.name) {
            PriorityLevel::Controllers
        } else if user.is_host_component() {
            PriorityLevel::System
        } else {
            PriorityLevel::Everybody
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(name: &str, groups: &[&str]) -> PriorityLevel {
        let levels = PriorityLevels::new(["system:serviceaccount:drydock-system:manager".to_owned()]);
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        levels.of(&User { name: name.to_owned(), groups, ..User::default() })
    }

    #[test]
    fn each_user_has_one_level() {
        assert_eq!(level("admin", &["system:masters"]), PriorityLevel::Exempt);
        assert_eq!(level("system:kube-aggregator", &["system:authenticated"]), PriorityLevel::System);
        let collector = "system:serviceaccount:kube-system:generic-garbage-collector";
        assert_eq!(level(collector, &["system:serviceaccounts:kube-system"]), PriorityLevel::System);
        let ours = "system:serviceaccount:drydock-system:manager";
        assert_eq!(level(ours, &["system:serviceaccounts:drydock-system"]), PriorityLevel::Controllers);
        assert_eq!(level("ann", &["system:authenticated"]), PriorityLevel::Everybody);
        assert_eq!(level("system:anonymous", &["system:unauthenticated"]), PriorityLevel::Anonymous);
    }

    #[test]
    fn a_neighbour_of_a_controller_is_none() {
        let neighbour = "system:serviceaccount:drydock-system:other";
        assert_eq!(level(neighbour, &["system:serviceaccounts:drydock-system"]), PriorityLevel::Everybody);
    }
}
