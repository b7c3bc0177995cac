//! The condition PodsWillBeLost: pods that no controller creates again once they are evicted, and data that goes with
//! them. `kubectl drain` refuses both; KEP-4212 evicts them, so that people must be able to read it before.

use std::collections::{HashMap, HashSet};

use drydock_api::metav1::{Condition, find_condition};
use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage, PODS_WILL_BE_LOST, PodType};
use drydock_api::text::{counted, first_of};
use drydock_runtime::Pod;
use drydock_runtime::events::Severity;

use super::{COMPLETED, StatusBuilder};
use crate::actions::{EventDraft, MaintenanceDecision};
use crate::world::WorldView;

/// Most pods that the message names.
const MAX_NAMED: usize = 5;
/// The message in stage Complete.
const STAY: &str = "The maintenance is complete: pods that are still on its nodes stay";

/// Pods that will be lost, and pods whose data will be.
#[derive(Debug, Default)]
struct Losses<'a> {
    /// Without a controller, or with a DaemonSet that is gone or being deleted.
    bare: Vec<&'a Pod>,
    /// With an emptyDir volume.
    with_empty_dir: usize,
}

impl<'a> Losses<'a> {
    /// The losses among these pods. Mirror pods do not count: their manifests stay on the node.
    fn of(pods: impl Iterator<Item = &'a Pod>) -> Self {
        let mut losses = Self::default();
        for pod in pods.filter(|pod| pod.pod_type() != PodType::Static) {
            losses.with_empty_dir += usize::from(pod.has_empty_dir);
            if pod.is_bare() {
                losses.bare.push(pod);
            }
        }
        losses.bare.sort_by_key(|pod| (&pod.namespace, &pod.name));
        losses
    }

    fn message(&self) -> String {
        let mut parts = Vec::new();
        if !self.bare.is_empty() {
            let names = self.bare.iter().map(|pod| format!("{}/{}", pod.namespace, pod.name));
            let named = first_of(names, MAX_NAMED);
            let bare = counted(self.bare.len(), "pod has", "pods have");
            parts.push(format!("{bare} no controller and will not come back: {named}"));
        }
        if self.with_empty_dir > 0 {
            let with = counted(self.with_empty_dir, "pod has", "pods have");
            parts.push(format!("{with} an emptyDir volume, whose data is lost"));
        }
        if parts.is_empty() {
            return "Every pod that is to leave has a controller, and none has an emptyDir volume".to_owned();
        }
        parts.join("; ")
    }
}

impl StatusBuilder<'_, '_> {
    /// The condition and the number of pods without a controller. From Cordon on; False in Complete, where
    /// nothing leaves.
    pub(super) fn will_be_lost(&self) -> Option<(Condition, usize)> {
        let stage = self.maintenance.spec.stage;
        if stage == NodeMaintenanceStage::Complete {
            find_condition(&self.maintenance.status.conditions, PODS_WILL_BE_LOST)?;
            return Some((self.condition(PODS_WILL_BE_LOST, false, COMPLETED, STAY.to_owned()), 0));
        }
        if !stage.holds_nodes() {
            return None;
        }
        let nodes = self.view.nodes_of(self.i).iter();
        let losses = Losses::of(
            nodes.flat_map(|n| self.view.pods_up_to(&n.name, self.last_type())).map(|pod| &***pod),
        );
        let is = !losses.bare.is_empty() || losses.with_empty_dir > 0;
        let reason = if is { "PodsOrDataWillBeLost" } else { "NothingWillBeLost" };
        Some((self.condition(PODS_WILL_BE_LOST, is, reason, losses.message()), losses.bare.len()))
    }
}

/// Number of pods without a controller in the last step, by UID of the maintenance that drains them.
#[derive(Clone, Debug, Default)]
pub(crate) struct BarePods(HashMap<String, usize>);

impl BarePods {
    /// Forgets maintenances that do not drain.
    pub(crate) fn update(&mut self, view: &WorldView<'_>) {
        let draining = view.world.maintenances.iter().filter(|m| m.spec.stage == NodeMaintenanceStage::Drain);
        let draining: HashSet<&str> = draining.map(|m| m.metadata.uid.as_str()).collect();
        self.0.retain(|uid, _| draining.contains(uid.as_str()));
    }

    /// Returns the event to publish with the status that begins the Drain stage. Later, publishes the event
    /// at once whenever there are more pods without a controller than in the last step.
    pub(super) fn note(
        &mut self,
        maintenance: &NodeMaintenance,
        (condition, bare): &(Condition, usize),
        decision: &mut MaintenanceDecision,
    ) -> Option<EventDraft> {
        if maintenance.spec.stage != NodeMaintenanceStage::Drain {
            return None;
        }
        let before = self.0.insert(maintenance.metadata.uid.clone(), *bare);
        let note =
            EventDraft::of(maintenance, Severity::Warning, PODS_WILL_BE_LOST, condition.message.as_str());
        if maintenance.status.started(NodeMaintenanceStage::Drain).is_none() {
            return Some(note).filter(|_| condition.is_true());
        }
        if before.is_some_and(|before| before < *bare) {
            decision.events.push(note);
        }
        None
    }
}
