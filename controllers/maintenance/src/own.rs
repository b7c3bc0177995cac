//! Drydock's own pods, which stay where they are while no other node takes them: without them a drain would not go on, and
//! nobody would say so.

use std::collections::HashSet;

use drydock_runtime::{Node, Pod};

use crate::machine::Config;
use crate::view::View;

/// What is said of a pod that stays.
pub(crate) const WHY: &str = "No node would take this pod of Drydock's own, and the drain would stop without it: make another \
                              node schedulable, or delete the pod by hand";

/// Names of the programs, as deploy/ labels their pods.
const PROGRAMS: [&str; 2] = ["drydock-apiserver", "drydock-controller-manager"];
const NAME_LABEL: &str = "app.kubernetes.io/name";

/// UIDs of the pods that stay.
pub(crate) fn staying<'a>(view: &View<'a>) -> HashSet<&'a str> {
    let own = || view.counted.values().flatten().filter(|pod| is_own(view.config, pod));
    if own().next().is_none() || view.world.nodes.values().any(|node| takes_pods(view, node)) {
        return HashSet::new();
    }
    own().map(|pod| pod.uid.as_str()).collect()
}

fn is_own(config: &Config, pod: &Pod) -> bool {
    let name = pod.labels.get(NAME_LABEL).map(String::as_str);
    pod.namespace == config.namespace && name.is_some_and(|name| PROGRAMS.contains(&name))
}

/// Whether a new pod without tolerations may come to a node, and is not to leave it again.
fn takes_pods(view: &View<'_>, node: &Node) -> bool {
    let keeps_off = |effect: &str| effect == "NoSchedule" || effect == "NoExecute";
    let is_tainted = node.taints.iter().any(|taint| keeps_off(&taint.effect));
    !node.unschedulable && !node.deleting && !is_tainted && !view.is_held(&node.name)
}
