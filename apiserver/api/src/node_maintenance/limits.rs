//! Limits on the number and the size of NodeMaintenances, and of their selectors, because controllers hold them all, and each
//! planning matches their selectors against every node or pod.

use drydock_machinery::Object;
use drydock_machinery::field::{Error, Path};
use drydock_machinery::kind::{BytesQuota, Quota};
use drydock_machinery::object::Size;

use super::types::NodeSelectorTerm;
use crate::MAX_USERNAME_BYTES;
use drydock_machinery::metav1::LabelSelector;

/// Maximum number of nodes in one object. The status of a node has about 350 bytes while its pods leave (its name,
/// one target per pod type, a message, two numbers), so that this many stay below the 1.5 MiB that the storage
/// accepts.
pub const MAX_NODES: usize = 4000;
/// Maximum bytes of `status.nodeStatuses` as JSON: what the storage accepts, less space for the rest of the object.
pub const MAX_NODE_STATUSES_BYTES: usize = 1_400_000;
/// Maximum bytes of one object that the storage accepts by default.
pub const MAX_OBJECT_BYTES: usize = 3 << 19;
/// Maximum number of pods in `status.podTurns`: those whose requests others have ended in the middle.
pub const MAX_PODS_WITH_TURNS: usize = 1000;
/// Maximum bytes of `status.podTurns` as JSON.
pub const MAX_POD_TURNS_BYTES: usize = 64 << 10;
/// Maximum bytes of all conditions together that the controller does not set, as JSON.
pub const MAX_CONDITION_BYTES: usize = 16 << 10;
/// Maximum bytes of metadata and spec together, with the managed fields of the spec: a selector that names [`MAX_NODES`]
/// nodes, twice, as `kubectl apply` repeats it in an annotation of at most 256 KiB. The rest is for the status.
pub const MAX_BYTES_WITHOUT_STATUS: usize = 512 << 10;
/// Maximum number of objects: one for each node of the largest clusters that Kubernetes supports.
pub const MAX_OBJECTS: usize = 5_000;
/// Maximum bytes of metadata and spec of all objects: 5,000 of 10 KiB. Controllers hold them all, and what they decode can take
/// ten times as much.
pub const MAX_ALL_BYTES: u64 = 48 << 20;
/// Maximum bytes of `status.nodeStatuses` of all objects, as JSON: 300,000 nodes of maintenances that are complete.
pub const MAX_ALL_STATUS_BYTES: usize = 48 << 20;
/// Maximum bytes of `status.creator`. Users whose names begin alike count as one from there on.
pub const MAX_CREATOR_BYTES: usize = 512;
/// Bytes of `status.nodeStatuses` that each object may have, whatever the others have: a status of twenty nodes.
pub const MIN_NODE_STATUSES_BYTES: usize = 8 << 10;
/// Maximum bytes that a change of the stage adds: its name, which `kubectl apply` repeats, our finalizer, the stage in the
/// status, and the name of the user.
const MAX_STAGE_CHANGE_BYTES: usize = 512 + MAX_USERNAME_BYTES;

/// The quota of all maintenances of the cluster.
pub const QUOTA: Quota = Quota {
    name: "nodemaintenances",
    hard: MAX_OBJECTS,
    reads: &[],
    counts: |_| true,
    remedy: "all node maintenances of the cluster count: delete those that are complete, or maintain several nodes with one",
    bytes: BytesQuota {
        name: "nodemaintenances-bytes",
        hard: MAX_ALL_BYTES,
        counts_status: false,
        remedy: "all node maintenances of the cluster count: delete those that are complete, or make them smaller; a change of \
                 the stage is still taken",
    },
};

/// Whether a write changes the stage, and adds little more than that: a maintenance must go on and come to its end however many
/// others there are. A stage never goes back, so that there are three such writes at most to an object.
pub fn is_stage_change(new: &Object, old: &Object) -> bool {
    let stage = |object: &Object| object.0.get("spec").and_then(|spec| spec.get("stage")).cloned();
    let [after, before] = [new, old].map(|object| Size::whole(object).fields);
    stage(new) != stage(old) && after <= before + MAX_STAGE_CHANGE_BYTES
}

/// Maximum number of entries of a drain plan, with the twelve that are inserted.
pub const MAX_DRAIN_PLAN: usize = 512;
/// Maximum number of finalizers beside Drydock's own.
pub const MAX_FINALIZERS: usize = 100;
/// Maximum number of requirements of a node selector, or of all selectors of a drain plan together.
pub const MAX_REQUIREMENTS: usize = 1000;
/// Maximum number of values of these requirements together: slightly more than the nodes that one maintenance can
/// have.
pub const MAX_VALUES: usize = 4096;

/// The size of selectors, counted so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelectorSize {
    requirements: usize,
    values: usize,
}

impl SelectorSize {
    /// Adds a term of a node selector.
    pub fn add_term(&mut self, term: &NodeSelectorTerm) {
        for requirement in term.match_expressions.iter().chain(&term.match_fields) {
            self.requirements += 1;
            self.values += requirement.values.len();
        }
    }

    /// Adds a label selector.
    pub fn add_labels(&mut self, selector: &LabelSelector) {
        self.requirements += selector.match_labels.len() + selector.match_expressions.len();
        self.values += selector.match_expressions.iter().map(|e| e.values.len()).sum::<usize>();
    }

    /// Returns an error if a maximum is exceeded.
    pub fn excess(&self, path: &Path) -> Option<Error> {
        let counts =
            [(self.requirements, MAX_REQUIREMENTS, "requirements"), (self.values, MAX_VALUES, "values")];
        let (count, max, what) = counts.into_iter().find(|(count, max, _)| count > max)?;
        let detail = format!("the selectors may have at most {max} {what} together, and have {count}");
        Some(Error::forbidden(path.clone(), detail))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_machinery::kind::Kind;
    use drydock_machinery::strategy::Strategy;
    use serde_json::json;

    use super::super::strategy::NodeMaintenanceStrategy;
    use super::*;

    /// Tenants with the right to create maintenances filled the memory of the controllers.
    #[test]
    fn every_maintenance_counts_and_its_size_is_bounded() {
        let kind = NodeMaintenanceStrategy.into_kind();
        let quota = kind.quota().unwrap();
        for stage in ["Idle", "Complete"] {
            assert!((quota.counts)(
                &Object::from_json(json!({"spec": {"stage": stage}}).to_string().as_bytes()).unwrap()
            ));
        }
        assert_eq!(kind.max_bytes_without_status(), Some(MAX_BYTES_WITHOUT_STATUS));
    }

    /// At a full quota no maintenance came to its end: Complete has three letters more than Drain.
    #[test]
    fn a_change_of_the_stage_is_needed_and_whatever_else_makes_a_maintenance_larger_is_not() {
        let kind = NodeMaintenanceStrategy.into_kind();
        let object = |stage: &str, more: usize| {
            let spec = json!({"stage": stage, "reason": "r".repeat(more)});
            let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": spec.to_string()});
            let text = json!({"metadata": {"annotations": annotations}, "spec": spec}).to_string();
            Object::from_json(text.as_bytes()).unwrap()
        };
        let stages = ["Idle", "Cordon", "Drain", "Complete"];
        for (at, old) in stages.into_iter().enumerate() {
            for new in &stages[at + 1..] {
                assert!(kind.is_needed_update(&object(new, 10), &object(old, 0)), "{old} -> {new}");
                assert!(!kind.is_needed_update(&object(new, 1000), &object(old, 0)), "{old} -> {new}");
            }
            assert!(!kind.is_needed_update(&object(old, 10), &object(old, 0)));
        }
        assert!(
            !kind.quota().unwrap().bytes.counts_status,
            "what controllers write takes nothing from others"
        );
    }

    #[test]
    fn a_maintenance_that_names_the_most_nodes_fits_beside_what_kubectl_apply_repeats() {
        let names: Vec<_> =
            (0..MAX_NODES).map(|at| format!("ip-10-0-{at:05}.eu-central-1.compute.internal")).collect();
        let named = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": names});
        let spec = json!({"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [named]}]}});
        let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": spec.to_string()});
        let object = json!({"metadata": {"name": "m", "annotations": annotations}, "spec": spec});
        let size = Size::without_status(&Object::from_json(object.to_string().as_bytes()).unwrap()).total();
        assert!(size < MAX_BYTES_WITHOUT_STATUS, "{size}");
    }
}
