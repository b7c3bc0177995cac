//! Events about a maintenance that goes further than its own plan says. It is decided once and matters for as
//! long as the drain goes on. So the event is published again: the host keeps an event for an hour, and it
//! may never have been written.

use std::collections::HashMap;

use drydock_api::metav1::is_condition_true;
use drydock_api::node_maintenance::{DRAINED, NodeMaintenance, NodeMaintenanceStage};
use drydock_plan::FastForward;
use drydock_runtime::events::Severity;
use drydock_runtime::events::reasons::DRAIN_FAST_FORWARDED;
use jiff::{SignedDuration, Timestamp};

use crate::actions::{EventDraft, MaintenanceDecision};
use crate::world::WorldView;

/// Time between two events with the same message.
const PUBLISH_INTERVAL: SignedDuration = SignedDuration::from_mins(30);
/// Most messages that are remembered.
const MAX_REMEMBERED: usize = 1000;

/// When an event was published last, by UID of the maintenance and message.
#[derive(Clone, Debug, Default)]
pub(crate) struct FastForwards(HashMap<(String, String), Timestamp>);

impl FastForwards {
    /// Publishes the events that are due again, of maintenances that are not drained yet.
    pub(super) fn update(&mut self, view: &WorldView<'_>, decision: &mut MaintenanceDecision) {
        let draining = view.world.maintenances.iter().filter(|m| is_draining(m));
        let draining: HashMap<&str, _> = draining.map(|m| (m.metadata.uid.as_str(), m)).collect();
        self.0.retain(|(uid, _), _| draining.contains_key(uid.as_str()));
        for ((uid, message), published) in &mut self.0 {
            let Some(maintenance) = draining.get(uid.as_str()) else { continue };
            if view.now.duration_since(*published) >= PUBLISH_INTERVAL {
                *published = view.now;
                decision.events.push(event(maintenance, message.clone()));
            }
            published.checked_add(PUBLISH_INTERVAL).into_iter().for_each(|at| decision.wake_at(at));
        }
    }

    /// The events about a maintenance, to be published once its status is stored.
    pub(super) fn events(
        &mut self,
        view: &WorldView<'_>,
        i: usize,
        maintenance: &NodeMaintenance,
        decision: &mut MaintenanceDecision,
    ) -> Vec<EventDraft> {
        let Some(place) = view.planned.places.get(&i) else { return Vec::new() };
        let all = view.planned.outcome.fast_forwards.iter().filter(|f| f.maintenance == *place);
        let messages: Vec<String> = all.map(message).collect();
        for message in messages.iter().filter(|_| is_draining(maintenance)) {
            if self.0.len() < MAX_REMEMBERED {
                self.0.insert((maintenance.metadata.uid.clone(), message.clone()), view.now);
                view.now.checked_add(PUBLISH_INTERVAL).into_iter().for_each(|at| decision.wake_at(at));
            }
        }
        messages.into_iter().map(|message| event(maintenance, message)).collect()
    }
}

fn is_draining(maintenance: &NodeMaintenance) -> bool {
    maintenance.spec.stage == NodeMaintenanceStage::Drain
        && !is_condition_true(&maintenance.status.conditions, DRAINED)
}

fn event(maintenance: &NodeMaintenance, message: String) -> EventDraft {
    EventDraft::of(maintenance, Severity::Warning, DRAIN_FAST_FORWARDED, message)
}

fn message(fast_forward: &FastForward) -> String {
    let by = match &fast_forward.other {
        Some(other) if other.is_older => format!("the older maintenance {}", other.name),
        Some(other) => format!("maintenance {}", other.name),
        None => "a maintenance that has ended".to_owned(),
    };
    match &fast_forward.node {
        Some(node) => format!(
            "Fast-forwarded on node {node} due to {by}: that one is further along there, and pods of entries that this \
             drain plan has not reached are evicted from that node together with the others"
        ),
        None => format!(
            "Fast-forwarded to the next entry of the drain plan before it was finished, because the plan contradicts \
             that of {by}"
        ),
    }
}
