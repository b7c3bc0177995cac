//! The text that the playground prints at its end: how to reach the cluster, and which commands to try.

use std::path::Path;

/// The manifest of a maintenance that the reader can start, of nodes that the first one left alone.
pub fn second_maintenance(nodes: &[String]) -> String {
    format!(
        "apiVersion: coordination.k8s.io/v1alpha1
kind: NodeMaintenance
metadata:
  name: {SECOND}
spec:
  nodeSelector:
    nodeSelectorTerms:
      - matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [{}]}}]
  stage: Drain
  reason: a drain of your own
",
        nodes.join(", ")
    )
}

/// The name of that maintenance.
const SECOND: &str = "rack-2";

/// The hints for a reader whose terminal has neither the kubeconfig nor kubectl.
pub fn hints(kubeconfig: &Path, bin: &Path, second: &Path, first: &str, metrics: &str) -> String {
    let commands = [
        ("kubectl explain nodemaintenance.spec".to_owned(), "what a maintenance can ask for"),
        (format!("kubectl describe nodemaintenance {first}"), "what became of the one that you saw"),
        (format!("kubectl apply -f {}", second.display()), "drain two more nodes"),
        ("kubectl get nodemaintenances --watch".to_owned(), "and watch how far they are"),
    ];
    let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or_default();
    let commands: String =
        commands.iter().map(|(command, what)| format!("    {command:width$}   # {what}\n")).collect();
    format!(
        "
The cluster is yours until Ctrl-C. In another terminal:

    export KUBECONFIG={}
    export PATH={}:$PATH

Then try:

{commands}
Metrics, for a service account with the ClusterRole drydock:metrics:

    curl --insecure -H \"Authorization: Bearer $(kubectl create token NAME)\" {metrics}/metrics
",
        kubeconfig.display(),
        bin.display(),
    )
}

#[cfg(test)]
mod tests {
    use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage};

    use super::*;

    #[test]
    fn the_second_maintenance_drains_its_nodes() {
        let text = second_maintenance(&["a".into(), "b".into()]);
        let read: NodeMaintenance = serde_yaml_ng::from_str(&text).unwrap();
        assert_eq!((read.metadata.name.as_str(), read.spec.stage), (SECOND, NodeMaintenanceStage::Drain));
        let selector = read.spec.node_selector.unwrap();
        assert_eq!(selector.node_selector_terms[0].match_expressions[0].values, ["a", "b"]);
    }

    #[test]
    fn the_hints_name_explain_describe_and_watch_in_one_column() {
        let text = hints(Path::new("/k"), Path::new("/b"), Path::new("/s.yaml"), "rack-1", "https://m");
        for command in
            ["explain nodemaintenance.spec", "describe nodemaintenance rack-1", "--watch", "/s.yaml"]
        {
            assert!(text.contains(command), "{command}: {text}");
        }
        let columns: Vec<_> = text.lines().filter_map(|line| line.find(" # ")).collect();
        assert!(columns.len() == 4 && columns.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
    }
}
