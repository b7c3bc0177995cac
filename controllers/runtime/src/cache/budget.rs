//! A PodDisruptionBudget, trimmed.

use std::collections::HashMap;

use drydock_api::text::cut_bytes;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Deserialize;

use super::budget_selector::BudgetSelector;
use super::cacheable::Cacheable;
use super::pod::Pod;

/// How long the host counts a pod as disrupted that does not terminate.
const DISRUPTED_FOR: SignedDuration = SignedDuration::from_mins(2);

/// A PodDisruptionBudget.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "WireBudget")]
pub struct PodDisruptionBudget {
    /// `metadata.name`
    pub name: String,
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.resourceVersion`
    pub resource_version: String,
    /// `metadata.generation`
    pub generation: i64,
    /// `spec.selector`; none selects nothing, an empty one everything in the namespace.
    pub selector: Option<BudgetSelector>,
    /// `spec.unhealthyPodEvictionPolicy`
    pub unhealthy_policy: UnhealthyPolicy,
    /// `spec.minAvailable`
    pub min_available: Option<IntOrString>,
    /// `spec.maxUnavailable`
    pub max_unavailable: Option<IntOrString>,
    /// `status.observedGeneration`
    pub observed_generation: i64,
    /// `status.disruptionsAllowed`
    pub disruptions_allowed: i32,
    /// `status.currentHealthy`
    pub current_healthy: i32,
    /// `status.desiredHealthy`
    pub desired_healthy: i32,
    /// `status.expectedPods`
    pub expected_pods: i32,
    /// The latest of `status.disruptedPods`: when the eviction API let a pod go last, for any client. None while the
    /// host remembers no pod there: it forgets each when the pod is gone.
    pub last_disruption: Option<Timestamp>,
    /// Number of `status.disruptedPods`.
    pub disrupted_pods: usize,
}

/// `spec.unhealthyPodEvictionPolicy` (KEP-3017).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum UnhealthyPolicy {
    /// Running pods that are not healthy may always go.
    AlwaysAllow,
    /// Running pods that are not healthy may go only when the budget is met.
    #[default]
    IfHealthyBudget,
    /// A value that is not known: such pods do not go (k8s.io/api/policy/v1, PodDisruptionBudgetSpec).
    #[serde(other)]
    Unknown,
}

impl PodDisruptionBudget {
    /// Whether the budget covers a pod of its namespace. None if only the host knows: the selector is too large to be kept,
    /// or requires something of a label of the pod that is not.
    pub fn covers(&self, pod: &Pod) -> Option<bool> {
        match &self.selector {
            None => Some(false),
            Some(selector) => selector.matches(pod.known_labels()),
        }
    }
    /// Until when the host counts pods as disrupted that the eviction API let go and that do not terminate, as after an
    /// eviction that was broken off; none if there are no such pods now (k8s.io/kubernetes
    /// pkg/controller/disruption, DeletionTimeout).
    pub fn disrupted_until(&self) -> Option<Timestamp> {
        self.last_disruption?.checked_add(DISRUPTED_FOR).ok()
    }
    /// What [`PodDisruptionBudget::covers`] costs at most, in comparisons of strings.
    pub fn comparisons(&self) -> usize {
        1 + self.selector.as_ref().map_or(0, BudgetSelector::comparisons)
    }
    /// Whether the budget's controller has seen the current spec; until then the host refuses every eviction.
    pub fn is_observed(&self) -> bool {
        self.observed_generation >= self.generation
    }
}

impl Cacheable for PodDisruptionBudget {
    const GROUP: &'static str = "policy";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "PodDisruptionBudget";
    const PLURAL: &'static str = "poddisruptionbudgets";

    fn name(&self) -> &str {
        &self.name
    }
    fn namespace(&self) -> &str {
        &self.namespace
    }
    fn uid(&self) -> &str {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

/// Most bytes of a number or a percentage without leading zeros.
const MAX_AMOUNT: usize = 16;

/// The same number or percentage, without what makes it long: a host takes a megabyte of leading zeros. One that is no
/// percentage stays none.
pub fn short_amount(amount: IntOrString) -> IntOrString {
    let IntOrString::String(text) = amount else { return amount };
    if text.len() <= MAX_AMOUNT {
        return IntOrString::String(text);
    }
    let digits = text.trim_start_matches('0');
    let is_zero = !digits.starts_with(|first: char| first.is_ascii_digit());
    let short = if is_zero && digits.len() < text.len() { format!("0{digits}") } else { digits.to_owned() };
    IntOrString::String(cut_bytes(&short, MAX_AMOUNT))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireBudget {
    metadata: WireBudgetMeta,
    spec: WireBudgetSpec,
    status: WireBudgetStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireBudgetMeta {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    generation: i64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireBudgetSpec {
    selector: Option<BudgetSelector>,
    unhealthy_pod_eviction_policy: Option<UnhealthyPolicy>,
    min_available: Option<IntOrString>,
    max_unavailable: Option<IntOrString>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireBudgetStatus {
    observed_generation: i64,
    disruptions_allowed: i32,
    current_healthy: i32,
    desired_healthy: i32,
    expected_pods: i32,
    disrupted_pods: HashMap<String, Option<Timestamp>>,
}

impl From<WireBudget> for PodDisruptionBudget {
    fn from(wire: WireBudget) -> Self {
        Self {
            name: wire.metadata.name,
            namespace: wire.metadata.namespace,
            uid: wire.metadata.uid,
            resource_version: wire.metadata.resource_version,
            generation: wire.metadata.generation,
            selector: wire.spec.selector,
            unhealthy_policy: wire.spec.unhealthy_pod_eviction_policy.unwrap_or_default(),
            min_available: wire.spec.min_available.map(short_amount),
            max_unavailable: wire.spec.max_unavailable.map(short_amount),
            observed_generation: wire.status.observed_generation,
            disruptions_allowed: wire.status.disruptions_allowed,
            current_healthy: wire.status.current_healthy,
            desired_healthy: wire.status.desired_healthy,
            expected_pods: wire.status.expected_pods,
            disrupted_pods: wire.status.disrupted_pods.len(),
            last_disruption: wire.status.disrupted_pods.into_values().flatten().max(),
        }
    }
}
