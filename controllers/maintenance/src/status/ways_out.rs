//! What to do about pods of DaemonSets and static pods, for which a drain may never end by itself. A
//! DaemonSet that tolerates every taint puts its pods back whenever they are deleted, and a static pod stays
//! if no node agent takes its manifest away.

use drydock_api::node_maintenance::{PodType, WORKLOADS_DRAINED};

use super::StatusBuilder;

/// Most characters of the name of an object.
const MAX_NAME: usize = 253;
/// The end of the second maintenance's name.
const SECOND_NAME_SUFFIX: &str = "-default";

impl StatusBuilder<'_, '_> {
    /// The advice beside the number of pods that are left; none unless no pod of type Default is left and
    /// some pod may stay forever.
    pub(super) fn ways_out(&self, last: PodType) -> Option<String> {
        let nodes = self.view.nodes_of(self.i);
        let is_left = |node: &str| !self.view.pods_up_to(node, PodType::Default).is_empty();
        if last == PodType::Default || nodes.iter().any(|node| is_left(&node.name)) {
            return None;
        }
        let may_stay = nodes.iter().any(|node| self.sources.blockers.may_stay(&node.name, last));
        may_stay.then(|| commands(&self.maintenance.metadata.name))
    }

    /// The end of the message of a blocker that may stay forever. The guide has the command that creates the
    /// second maintenance, for which there is no room.
    pub(super) fn ways_out_of_blocker(&self) -> String {
        let name = &self.maintenance.metadata.name;
        format!(
            "To go on without such pods: `{}`; or create a second NodeMaintenance with lastPodType: Default for the same nodes, as \
             shown there, then `{}`",
            wait(name),
            delete(name)
        )
    }
}

fn commands(name: &str) -> String {
    format!(
        "No pod of type Default is left. To go on without the others, wait for type Default alone: `{}`. Or create a second \
         maintenance with lastPodType: Default for the same nodes, and only then delete this one, so that the nodes stay \
         cordoned: `{}`",
        wait(name),
        replace(name)
    )
}

fn wait(name: &str) -> String {
    format!("kubectl wait --for=condition={WORKLOADS_DRAINED} nodemaintenance/{name}")
}

/// The command that creates a maintenance of the same nodes, and deletes this one if that succeeds. Names are
/// DNS names, and need no quotes. The manifest must not begin with a brace, because kubectl before 1.33 would
/// read it as strict JSON.
fn replace(name: &str) -> String {
    let head: String = name.chars().take(MAX_NAME - SECOND_NAME_SUFFIX.len()).collect();
    let second = format!("{}{SECOND_NAME_SUFFIX}", head.trim_end_matches(['-', '.']));
    format!(
        "kubectl get nodemaintenance {name} -o jsonpath='{{\"apiVersion: coordination.k8s.io/v1alpha1\\nkind: \
         NodeMaintenance\\nmetadata: {{name: {second}}}\\nspec: {{stage: Drain, lastPodType: Default, nodeSelector: \
         \"}}{{.spec.nodeSelector}}{{\"}}\"}}' | kubectl create -f - && {}",
        delete(name)
    )
}

fn delete(name: &str) -> String {
    format!("kubectl delete nodemaintenance {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message of a blocker has no room for them.
    #[test]
    fn the_guide_has_the_command_too() {
        let guide = include_str!("../../../README.md");
        assert!(guide.contains(&replace("NAME")), "{}", replace("NAME"));
    }

    #[test]
    fn the_command_names_the_maintenance_and_keeps_to_the_length_of_names() {
        let wanted = "kubectl get nodemaintenance m -o jsonpath='{\"apiVersion: coordination.k8s.io/v1alpha1\\nkind: \
                      NodeMaintenance\\nmetadata: {name: m-default}\\nspec: {stage: Drain, lastPodType: Default, nodeSelector: \
                      \"}{.spec.nodeSelector}{\"}\"}' | kubectl create -f - && kubectl delete nodemaintenance m";
        assert_eq!(replace("m"), wanted);
        let long = format!("{}.x", "a".repeat(251));
        assert!(replace(&long).contains(&format!("{{name: {}-default}}", "a".repeat(245))));
        assert!(
            replace(&format!("{}.{}", "a".repeat(244), "b".repeat(8)))
                .contains(&format!("{{name: {}-default}}", "a".repeat(244)))
        );
    }
}
