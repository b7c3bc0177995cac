//! Nodes that others made schedulable again: between two plannings a node may be uncordoned and cordoned again, or written for
//! other reasons.

use std::sync::Arc;

use drydock_runtime::{Node, ObjectChange};

use crate::CORDONED_BY;

/// The node that a change made schedulable while it was under maintenance: we take our annotation away when we do it.
pub(crate) fn uncordoned_by(change: &ObjectChange<Node>) -> Option<&Node> {
    let is_ours = |node: &&Arc<Node>| node.annotations.contains_key(CORDONED_BY);
    let old = change.old.as_ref().filter(is_ours)?;
    let new = change.new.as_ref().filter(is_ours)?;
    (old.unschedulable && !new.unschedulable && old.uid == new.uid).then_some(new)
}
