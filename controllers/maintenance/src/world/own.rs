//! Drydock's own pods, which stay where they are while no other node takes pods: without them a drain would not go on, and
//! nobody would say so.

use std::collections::HashSet;

use drydock_runtime::cache::Taint;
use drydock_runtime::{Node, Pod};

use crate::config::Config;
use crate::world::WorldView;

/// What is said of a pod that stays.
pub(crate) const WHY: &str = "No other node takes pods, and the drain would stop without this one, which is Drydock's own: make \
                              another node schedulable, or delete the pod by hand";

/// Names of the programs, as deploy/ labels their pods.
const PROGRAMS: [&str; 2] = ["drydock-apiserver", "drydock-controller-manager"];
const NAME_LABEL: &str = "app.kubernetes.io/name";

/// UIDs of the pods that stay.
pub(crate) fn staying<'a>(view: &WorldView<'a>) -> HashSet<&'a str> {
    let own = view.counted.values().flatten().filter(|pod| is_own(view.config, pod));
    own.filter(|pod| !view.world.nodes.values().any(|node| takes(view, node, pod)))
        .map(|pod| pod.uid.as_str())
        .collect()
}

fn is_own(config: &Config, pod: &Pod) -> bool {
    let name = pod.labels.get(NAME_LABEL).map(String::as_str);
    pod.namespace == config.namespace && name.is_some_and(|name| PROGRAMS.contains(&name))
}

/// Whether another node takes new pods and is not about to be drained. A pod like this one stands taints that its present
/// node has. Room, affinity and volumes are not looked at.
fn takes(view: &WorldView<'_>, node: &Node, pod: &Pod) -> bool {
    let stood = view.world.nodes.get(&pod.node_name).map_or(&[][..], |node| &node.taints);
    let keeps_off = |taint: &&Taint| taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    let is_stood = |taint: &Taint| stood.iter().any(|s| (&s.key, &s.effect) == (&taint.key, &taint.effect));
    let is_free = !node.unschedulable && !node.deleting && !view.is_held(&node.name);
    is_free && node.name != pod.node_name && node.taints.iter().filter(keeps_off).all(is_stood)
}
