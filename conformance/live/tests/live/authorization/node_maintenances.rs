//! NodeMaintenances: the right to delete each node that is selected, before the change or after it.

use anyhow::Result;
use drydock_conformance::kinds::node_maintenance;
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
    user.kubectl.apply(&node_maintenance("authz-own", "Idle", &[&mine])).await?;

    let why =
        format!(r#"user "owns-one-node" must be allowed to delete the selected nodes; denied: {theirs}"#);
    let both = node_maintenance("authz-both", "Idle", &[&mine, &theirs]);
    let refused = user.kubectl.apply_refused(&both).await?;
    assert!(refused.trim_end().ends_with(&why), "{refused}");
    // Neither onto a node nor off it.
    let refused = user.kubectl.apply_refused(&node_maintenance("authz-own", "Idle", &[&theirs])).await?;
    assert!(refused.trim_end().ends_with(&why), "{refused}");
    let admin = shared.kubectl();
    admin.apply(&node_maintenance("authz-others", "Idle", &[&theirs])).await?;
    let off = json!({"spec": {"nodeSelector": node_maintenance("", "", &[&mine])["spec"]["nodeSelector"]}});
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
