//! The stages of a NodeMaintenance: which changes are allowed, and what follows from a change.
//!
//! ```text
//!   Idle ──▶ Cordon ──▶ Drain ──▶ Complete      any may be skipped, none goes back, Complete is the end
//! ```

use super::types::NodeMaintenanceStage;

/// Whether a stage may change to another. An object that is being deleted may only change to Complete.
pub fn may_change(old: NodeMaintenanceStage, new: NodeMaintenanceStage, deleting: bool) -> bool {
    let forward = old < new && new <= NodeMaintenanceStage::Complete;
    old == new || (forward && (!deleting || new == NodeMaintenanceStage::Complete))
}

/// Whether a write adds the finalizer if it creates an object in stage `new` (`old` is `None`), or changes the stage
/// to it.
pub fn places_finalizer(old: Option<NodeMaintenanceStage>, new: NodeMaintenanceStage) -> bool {
    old != Some(new)
        && matches!(
            new,
            NodeMaintenanceStage::Cordon | NodeMaintenanceStage::Drain | NodeMaintenanceStage::Complete
        )
}

/// The stage that a deletion sets.
pub fn stage_on_deletion(stage: NodeMaintenanceStage) -> NodeMaintenanceStage {
    if stage == NodeMaintenanceStage::Idle {
        NodeMaintenanceStage::Idle
    } else {
        NodeMaintenanceStage::Complete
    }
}

#[cfg(test)]
mod tests {
    use super::NodeMaintenanceStage::{Complete, Cordon, Drain, Idle, Unknown};
    use super::*;

    #[test]
    fn stages_only_move_forward_and_may_skip() {
        let order = [Idle, Cordon, Drain, Complete];
        for (i, old) in order.into_iter().enumerate() {
            for (j, new) in order.into_iter().enumerate() {
                assert_eq!(may_change(old, new, false), i <= j, "{old:?} -> {new:?}");
            }
        }
        assert!(!may_change(Idle, Unknown, false) && !may_change(Complete, Unknown, false));
    }

    #[test]
    fn an_object_that_is_being_deleted_moves_to_complete_only() {
        assert!(!may_change(Idle, Cordon, true) && !may_change(Cordon, Drain, true));
        assert!(
            may_change(Idle, Complete, true)
                && may_change(Drain, Complete, true)
                && may_change(Drain, Drain, true)
        );
    }

    #[test]
    fn the_finalizer_comes_with_a_change_of_stage_and_never_without() {
        assert!(
            places_finalizer(None, Cordon)
                && places_finalizer(None, Complete)
                && !places_finalizer(None, Idle)
        );
        assert!(places_finalizer(Some(Idle), Drain) && !places_finalizer(Some(Drain), Drain));
    }

    #[test]
    fn deletion_moves_to_complete_unless_idle() {
        assert_eq!(
            [Idle, Cordon, Drain, Complete].map(stage_on_deletion),
            [Idle, Complete, Complete, Complete]
        );
    }
}
