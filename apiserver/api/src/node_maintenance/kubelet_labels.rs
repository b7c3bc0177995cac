//! Which labels a kubelet may set on its own node, and which terms of a node selector it can so make select the node. A stolen
//! kubelet that does so joins a drain: its node is cordoned, and a pod on it that never leaves keeps a tier open for all other
//! nodes.
//!
//! A kubelet may set any label of its node, but for those in the domain node-restriction.kubernetes.io, and, of those in
//! kubernetes.io and k8s.io, for all that are not made for kubelets (plugin/pkg/admission/noderestriction/admission.go,
//! getForbiddenLabels; k8s.io/kubelet/pkg/apis/well_known_labels.go).

use drydock_machinery::field::Path;

use super::types::{NodeSelector, NodeSelectorTerm};

/// The domain of labels that no kubelet may set.
const PROTECTED: &str = "node-restriction.kubernetes.io";
/// The domains of labels that belong to Kubernetes.
const KUBERNETES: [&str; 2] = ["kubernetes.io", "k8s.io"];
/// The domains of Kubernetes in which a kubelet may set labels.
const OF_KUBELETS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// The labels of Kubernetes in other domains that a kubelet may set.
const LABELS_OF_KUBELETS: [&str; 10] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Returns a warning of the first term that a kubelet can join; `None` if there is none.
pub fn warning(selector: &NodeSelector) -> Option<String> {
    let mut terms = selector.node_selector_terms.iter().enumerate();
    let (index, key) = terms.find_map(|(index, term)| Some((index, joined_by(term)?)))?;
    let path = Path::new("spec").child("nodeSelector").child("nodeSelectorTerms").index(index);
    Some(format!(
        "{path}: a kubelet may set the label {key:?} of its node, and so add its node to the maintenance; select nodes by \
         metadata.name, or by a label in {PROTECTED}, which kubelets may not set"
    ))
}

/// Returns the first label by which a kubelet can make the term select its node. `None` if the term names its nodes, wants
/// a label that kubelets may not set, or is about no other labels.
fn joined_by(term: &NodeSelectorTerm) -> Option<&str> {
    if term.match_fields.iter().any(|field| field.operator == "In") {
        return None;
    }
    let wants = |operator: &str| !matches!(operator, "NotIn" | "DoesNotExist");
    let mut labels = term.match_expressions.iter();
    if labels.clone().any(|label| wants(&label.operator) && !is_set_by_kubelets(&label.key)) {
        return None;
    }
    labels.find(|label| is_set_by_kubelets(&label.key)).map(|label| label.key.as_str())
}

/// Whether a cache keeps this label of a node whatever else the node has: the few of Kubernetes, and all that no kubelet may set.
/// A stolen kubelet could otherwise hide them behind thousands of its own, and take its node out of a drain.
pub fn is_always_kept(key: &str) -> bool {
    LABELS_OF_KUBELETS.contains(&key) || !is_set_by_kubelets(key)
}

/// Whether NodeRestriction lets a kubelet set a label with this key on its node.
fn is_set_by_kubelets(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_in = |parent: &&str| {
        domain.strip_suffix(parent).is_some_and(|below| below.is_empty() || below.ends_with('.'))
    };
    if is_in(&PROTECTED) {
        return false;
    }
    !KUBERNETES.iter().any(is_in) || OF_KUBELETS.iter().any(is_in) || LABELS_OF_KUBELETS.contains(&key)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kubelet_sets_what_is_not_kubernetes_own() {
        for key in [
            "rack",
            "topology.example.com/rack",
            "kubernetes.io.example.com/a",
            "notkubernetes.io/a",
            "topology.kubernetes.io/zone",
            "node.kubernetes.io/instance-type",
            "a.kubelet.kubernetes.io/b",
        ] {
            assert!(is_set_by_kubelets(key), "{key}");
        }
        for key in [
            "node-restriction.kubernetes.io/rack",
            "a.node-restriction.kubernetes.io/rack",
            "node-role.kubernetes.io/control-plane",
            "k8s.io/a",
            "kubernetes.io/rack",
        ] {
            assert!(!is_set_by_kubelets(key), "{key}");
        }
    }

    fn joined(term: serde_json::Value) -> Option<String> {
        let term: NodeSelectorTerm = serde_json::from_value(term).unwrap_or_default();
        joined_by(&term).map(str::to_owned)
    }

    /// A stolen kubelet gave its node the label of a rack that was being drained.
    #[test]
    fn a_term_is_open_to_kubelets_unless_it_names_nodes_or_wants_a_protected_label() {
        let is = |key: &str, operator: &str| json!({ "key": key, "operator": operator, "values": ["7"] });
        let (rack, protected) = ("example.com/rack", "node-restriction.kubernetes.io/rack");
        let of = |labels: &[(&str, &str)]| {
            let labels: Vec<_> = labels.iter().map(|(key, operator)| is(key, operator)).collect();
            joined(json!({ "matchExpressions": labels }))
        };
        for operator in ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] {
            assert_eq!(of(&[(rack, operator)]).as_deref(), Some(rack), "{operator}");
            assert_eq!(of(&[(protected, operator)]), None, "{operator}");
        }
        assert_eq!(of(&[(rack, "In"), (protected, "In")]), None);
        assert_eq!(of(&[(protected, "NotIn"), (rack, "In")]).as_deref(), Some(rack));
        let named = |operator: &str| {
            joined(
                json!({ "matchExpressions": [is(rack, "In")], "matchFields": [is("metadata.name", operator)] }),
            )
        };
        assert_eq!((named("In"), named("NotIn").as_deref()), (None, Some(rack)));
        assert_eq!(joined(json!({})), None);
    }

    #[test]
    fn the_first_open_term_is_named() {
        let rack = |key: &str| json!({ "matchExpressions": [{ "key": key, "operator": "Exists" }] });
        let terms = [rack("node-restriction.kubernetes.io/rack"), rack("rack"), rack("row")];
        let selector = serde_json::from_value(json!({ "nodeSelectorTerms": terms })).unwrap_or_default();
        let warning = warning(&selector).unwrap_or_default();
        let words =
            "spec.nodeSelector.nodeSelectorTerms[1]: a kubelet may set the label \"rack\" of its node";
        assert!(warning.starts_with(words), "{warning}");
    }
}
