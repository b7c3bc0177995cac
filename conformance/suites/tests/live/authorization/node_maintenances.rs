//! NodeMaintenances: the right to delete each node that is selected, before the change or after it.

use anyhow::Result;
use drydock_api::node_maintenance::FINALIZER;
use drydock_testkit::kinds::{named_node_maintenance, node_maintenance};
use serde_json::json;

use super::users::{User, rule};
use crate::shared::shared;

const WRITES: [&str; 6] = ["get", "list", "create", "update", "patch", "delete"];

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_delete_a_node_may_not_maintain_it() -> Result<()> {
    let shared = shared().await?;
    let (mine, theirs) = (shared.node("authz-mine").await?, shared.node("authz-theirs").await?);
    let rights = [
        rule("coordination.k8s.io", "nodemaintenances", &[], &WRITES),
        rule("", "nodes", &[&mine], &["delete"]),
    ];
    let user = User::with_rights(shared, "owns-one-node", "", &rights).await?;
    user.kubectl.apply(&named_node_maintenance("authz-own", "Idle", &[&mine])).await?;

    let why =
        format!(r#"user "owns-one-node" must be allowed to delete the selected nodes; denied: {theirs}"#);
    let both = named_node_maintenance("authz-both", "Idle", &[&mine, &theirs]);
    let refused = user.kubectl.apply_refused(&both).await?;
    assert!(refused.trim_end().ends_with(&why), "{refused}");
    // Neither onto a node nor off it.
    let refused =
        user.kubectl.apply_refused(&named_node_maintenance("authz-own", "Idle", &[&theirs])).await?;
    assert!(refused.trim_end().ends_with(&why), "{refused}");
    let admin = shared.kubectl();
    admin.apply(&named_node_maintenance("authz-others", "Idle", &[&theirs])).await?;
    let off =
        json!({"spec": {"nodeSelector": named_node_maintenance("", "", &[&mine])["spec"]["nodeSelector"]}});
    for write in [
        &["patch", "nm", "authz-others", "--type=merge", &format!("--patch={off}")][..],
        &["delete", "nm", "authz-others"],
    ] {
        let refused = user.kubectl.refused(write).await?;
        assert!(refused.trim_end().ends_with(&why), "{refused}");
    }
    assert!(admin.refused(&["get", "nm", "authz-both"]).await?.contains("NotFound"));
    user.kubectl.ok(&["delete", "nm", "authz-own"]).await?;
    admin.ok(&["delete", "nm", "authz-others"]).await?;
    Ok(())
}

/// No node matched yet, so nothing was authorized; nor later, when one joined.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_delete_a_node_may_not_maintain_it_before_it_is_there() -> Result<()> {
    let shared = shared().await?;
    let rights = [
        rule("coordination.k8s.io", "nodemaintenances", &[], &WRITES),
        rule("", "nodes", &["authz-mine-to-come"], &["delete"]),
    ];
    let user = User::with_rights(shared, "owns-a-node-to-come", "", &rights).await?;
    let own = "authz-own-to-come";
    user.kubectl.apply(&named_node_maintenance(own, "Idle", &["authz-mine-to-come"])).await?;
    let theirs = named_node_maintenance(own, "Idle", &["authz-theirs-to-come"]);
    let refused = user.kubectl.apply_refused(&theirs).await?;
    assert!(refused.trim_end().ends_with("denied: authz-theirs-to-come"), "{refused}");
    // A label can be given to any node.
    for name in ["authz-by-label", own] {
        let refused =
            user.kubectl.apply_refused(&node_maintenance(name, "Idle", &["authz-mine-to-come"])).await?;
        assert!(refused.contains("must be allowed to delete nodes whatever their name"), "{refused}");
    }
    user.kubectl.ok(&["delete", "nm", own]).await?;
    Ok(())
}

/// The controller removes its finalizer: for that it held the right to delete every node.
#[tokio::test(flavor = "multi_thread")]
async fn removing_the_finalizer_and_nothing_else_needs_the_right_to_update_finalizers() -> Result<()> {
    let shared = shared().await?;
    let node = shared.node("authz-finalizer").await?;
    let rights = [
        rule("coordination.k8s.io", "nodemaintenances", &[], &["get", "patch"]),
        rule("coordination.k8s.io", "nodemaintenances/finalizers", &[], &["update"]),
    ];
    let releases = User::with_rights(shared, "releases", "", &rights).await?;
    let writes =
        [rule("coordination.k8s.io", "nodemaintenances", &[], &WRITES), rule("", "nodes", &[], &["delete"])];
    let maintains = User::with_rights(shared, "maintains", "", &writes).await?;
    let (name, other) = ("authz-finalizer", "authz.example.com/other");
    maintains.kubectl.apply(&node_maintenance(name, "Cordon", &[&node])).await?;
    let finalizers = |finalizers: &[&str]| json!({"metadata": {"finalizers": finalizers}}).to_string();
    let patch = |patch: String| {
        let patched = ["patch", "nm", name, "--type=merge", "--patch"].map(str::to_owned);
        patched.into_iter().chain([patch]).collect::<Vec<_>>()
    };
    maintains.kubectl.ok(&refs(&patch(finalizers(&[FINALIZER, other])))).await?;
    let release = patch(finalizers(&[other]));
    let refused = maintains.kubectl.refused(&refs(&release)).await?;
    assert!(refused.contains("must be allowed to update nodemaintenances/finalizers"), "{refused}");
    for more in
        [finalizers(&[]), finalizers(&[FINALIZER]), json!({"metadata": {"labels": {"a": "b"}}}).to_string()]
    {
        let refused = releases.kubectl.refused(&refs(&patch(more))).await?;
        assert!(refused.contains("must be allowed to delete nodes"), "{refused}");
    }
    releases.kubectl.ok(&refs(&release)).await?;
    let left = shared.kubectl().ok(&["get", "nm", name, "-o=jsonpath={.metadata.finalizers}"]).await?;
    assert_eq!(left, format!("[{other:?}]"));
    maintains.kubectl.ok(&refs(&patch(finalizers(&[])))).await?;
    shared.kubectl().ok(&["delete", "nm", name]).await.map(drop)
}

fn refs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selection_of_all_nodes_is_warned_of() -> Result<()> {
    let shared = shared().await?;
    shared.node("authz-all").await?;
    let mut object = node_maintenance("authz-all", "Idle", &[]);
    object["spec"]["nodeSelector"]["nodeSelectorTerms"] =
        json!([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]);
    let kubectl = shared.kubectl();
    let said = kubectl.run(&["create", "--dry-run=server", "-f", "-"], &object.to_string()).await?;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("Warning: spec.nodeSelector: selects all nodes of the cluster"), "{said:?}");
    assert!(kubectl.refused(&["get", "nm", "authz-all"]).await?.contains("NotFound"));
    Ok(())
}

/// A stolen kubelet gave its node the label by which a rack was drained, and a pod there kept a tier open.
#[tokio::test(flavor = "multi_thread")]
async fn a_selection_that_kubelets_can_join_is_warned_of() -> Result<()> {
    let shared = shared().await?;
    let warned = async |key: &str| -> Result<bool> {
        let mut object = node_maintenance("authz-kubelet", "Idle", &[]);
        object["spec"]["nodeSelector"]["nodeSelectorTerms"] =
            json!([{"matchExpressions": [{"key": key, "operator": "In", "values": ["7"]}]}]);
        let create = ["create", "--dry-run=server", "-f", "-"];
        let said = shared.kubectl().run(&create, &object.to_string()).await?;
        assert_eq!(said.code, 0, "{said:?}");
        Ok(said.err.contains(&format!("a kubelet may set the label {key:?} of its node")))
    };
    assert!(warned("topology.kubernetes.io/zone").await?);
    assert!(!warned("node-restriction.kubernetes.io/zone").await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_term_that_selects_no_node_is_warned_of() -> Result<()> {
    let shared = shared().await?;
    let mut object = node_maintenance("authz-none", "Idle", &[]);
    object["spec"]["nodeSelector"]["nodeSelectorTerms"] = json!([{}]);
    let create = ["create", "--dry-run=server", "-f", "-"];
    let said = shared.kubectl().run(&create, &object.to_string()).await?;
    assert_eq!(said.code, 0, "{said:?}");
    let words = "Warning: spec.nodeSelector.nodeSelectorTerms[0]: selects no node, as it has no requirements";
    assert!(said.err.contains(words), "{said:?}");
    Ok(())
}
