//! The two kinds of the group `coordination.k8s.io/v1alpha1`, a folder each: EvictionRequest and NodeMaintenance.
//!
//! Does no I/O. The server drives each kind through its `strategy`. The controllers use the structs in `types`, and
//! the same transition table that admission enforces.

pub mod eviction_request;
pub mod node_maintenance;

pub mod reasons;

pub use drydock_machinery::metav1::{self, time};
pub use drydock_machinery::object::json_len;
pub use drydock_machinery::strategy::view::decode;
pub use drydock_machinery::{FENCING_TOKEN_HEADER, REFUSED_TOKEN_REASON, RefusedToken, text};

/// API group of both kinds.
pub const GROUP: &str = "coordination.k8s.io";
/// Version of both kinds.
pub const VERSION: &str = "v1alpha1";
/// `group/version` of both kinds.
pub const API_VERSION: &str = "coordination.k8s.io/v1alpha1";

/// Maximum bytes of the name of a user that an object records. Names of service accounts have at most 339.
pub const MAX_USERNAME_BYTES: usize = 1 << 10;
