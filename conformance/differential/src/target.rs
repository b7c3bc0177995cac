//! What a sequence is about: a kind as the host has it, and ours beside it.

/// A kind in both servers. Everything but the group and the version must be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetKind {
    /// CamelCase kind.
    pub kind: &'static str,
    /// Lower-case plural.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Where the host serves it.
    pub theirs: TargetApi,
    /// Where we serve it.
    pub ours: TargetApi,
}

/// A group and a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetApi {
    /// Empty for the core group.
    pub group: &'static str,
    /// `v1` and the like.
    pub version: &'static str,
}

/// Group of the reference kinds.
pub const REFERENCE_KINDS: TargetApi = TargetApi { group: "reference.drydock.test", version: "v1" };

/// PodDisruptionBudget: spec and status, an atomic selector, int-or-string, conditions, generation.
pub const BUDGET: TargetKind = TargetKind::reference_kind(
    "PodDisruptionBudget",
    "poddisruptionbudgets",
    TargetApi { group: "policy", version: "v1" },
);
/// ServiceAccount: lists by key and atomic ones at the top, no spec, no status, no generation.
pub const ACCOUNT: TargetKind =
    TargetKind::reference_kind("ServiceAccount", "serviceaccounts", TargetApi { group: "", version: "v1" });
/// ConfigMap: maps of texts and of bytes.
pub const CONFIG_MAP: TargetKind =
    TargetKind::reference_kind("ConfigMap", "configmaps", TargetApi { group: "", version: "v1" });
/// Lease: pointers, times of microseconds, and an update that may create.
pub const LEASE: TargetKind =
    TargetKind::reference_kind("Lease", "leases", TargetApi { group: "coordination.k8s.io", version: "v1" });

/// RuntimeClass: without a namespace, with a field that must be there, a map and a list that are atomic.
pub const RUNTIME_CLASS: TargetKind = TargetKind {
    namespaced: false,
    ..TargetKind::reference_kind(
        "RuntimeClass",
        "runtimeclasses",
        TargetApi { group: "node.k8s.io", version: "v1" },
    )
};

/// Group of the custom resources that have the schemas of our own kinds.
pub const CUSTOM: TargetApi = TargetApi { group: "custom.drydock.test", version: "v1alpha1" };
/// Group of our own kinds.
pub const OWN: TargetApi = TargetApi { group: drydock_api::GROUP, version: drydock_api::VERSION };

/// EvictionRequest, beside a custom resource of its schema.
pub const REQUEST: TargetKind = TargetKind {
    kind: "EvictionRequest",
    plural: drydock_api::eviction_request::RESOURCE,
    namespaced: true,
    theirs: CUSTOM,
    ours: OWN,
};
/// NodeMaintenance, beside a custom resource of its schema.
pub const MAINTENANCE: TargetKind = TargetKind {
    kind: "NodeMaintenance",
    plural: drydock_api::node_maintenance::RESOURCE,
    namespaced: false,
    theirs: CUSTOM,
    ours: OWN,
};

impl TargetKind {
    const fn reference_kind(kind: &'static str, plural: &'static str, theirs: TargetApi) -> Self {
        Self { kind, plural, namespaced: true, theirs, ours: REFERENCE_KINDS }
    }
}

impl TargetApi {
    /// `group/version`, or the version alone in the core group.
    pub fn api_version(self) -> String {
        if self.group.is_empty() { self.version.into() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path below which its resources are.
    pub fn root(self) -> String {
        if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        }
    }
}
