//! What is told of a maintenance that goes further than its own plan says.

use drydock_api::node_maintenance::NodeMaintenance;
use drydock_runtime::events::reasons::DRAIN_FAST_FORWARDED;

use crate::actions::{About, Note};
use crate::world::View;

/// What is told of the places where a maintenance goes further than its own plan says, once that is stored.
pub(super) fn notes(view: &View<'_>, maintenance: usize, object: &NodeMaintenance) -> Vec<Note> {
    let Some(place) = view.planned.get(&maintenance) else { return Vec::new() };
    let all = view.outcome.fast_forwards.iter().filter(|f| f.maintenance == *place);
    all.map(|told| {
        let by = match &told.other {
            Some(other) if other.is_older => format!("the older maintenance {}", other.name),
            Some(other) => format!("maintenance {}", other.name),
            None => "a maintenance that has ended".to_owned(),
        };
        let message = match &told.node {
            Some(node) => format!(
                "Fast-forwarded on node {node} due to {by}: that one is further along there, and pods of entries that this \
                 drain plan has not reached are evicted from that node together with the others"
            ),
            None => format!(
                "Fast-forwarded to the next entry of the drain plan before it was finished, because the plan contradicts \
                 that of {by}"
            ),
        };
        let about = About::Maintenance(object.metadata.name.clone());
        Note { about, warning: true, reason: DRAIN_FAST_FORWARDED, message }
    })
    .collect()
}
