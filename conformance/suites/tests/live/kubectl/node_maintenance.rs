//! NodeMaintenances by hand.

use anyhow::Result;
use drydock_testkit::kinds::node_maintenance;
use serde_json::json;

use super::words;
use crate::shared::shared;

#[tokio::test(flavor = "multi_thread")]
async fn a_maintenance_is_applied_shown_and_described() -> Result<()> {
    let shared = shared().await?;
    let (kubectl, node) = (shared.kubectl(), shared.node("shown").await?);
    let object = node_maintenance("shown", "Idle", &[&node]);
    assert_eq!(kubectl.apply(&object).await?, "nodemaintenance.coordination.k8s.io/shown created\n");
    // The plan was completed by the server, and still nothing is left to do.
    assert_eq!(kubectl.apply(&object).await?, "nodemaintenance.coordination.k8s.io/shown unchanged\n");
    kubectl.ok(&["wait", "nm", "shown", "--for=jsonpath={.status.observedGeneration}=1"]).await?;

    let table = kubectl.ok(&["get", "nm", "shown"]).await?;
    let names = ["NAME", "STAGE", "NODES", "DRAINED", "PENDING", "EVACUATING", "BLOCKED", "REASON", "AGE"];
    let row = ["shown", "Idle", "1", "<none>", "0", "0", "0", "a", "test"];
    assert!(words(&table).starts_with(&[&names[..], &row[..]].concat()), "{table}");
    let wide = kubectl.ok(&["get", "nm", "shown", "--output=wide"]).await?;
    assert!(words(&wide).starts_with(&[&names[..], &["MESSAGE"]].concat()), "{wide}");
    let described = kubectl.ok(&["describe", "nm", "shown"]).await?;
    for part in [
        "Kind:         NodeMaintenance",
        "Stage:     Idle",
        "Username:  admin",
        "Pod Priority:  2147483647",
        &node,
    ] {
        assert!(described.contains(part), "{part:?} is not in {described}");
    }
    kubectl.ok(&["delete", "nm", "shown"]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maintenance_is_labelled_annotated_patched_and_edited() -> Result<()> {
    let kubectl = shared().await?.kubectl();
    kubectl.apply(&node_maintenance("changed", "Idle", &["nowhere"])).await?;
    kubectl.ok(&["label", "nm", "changed", "rack=7"]).await?;
    kubectl.ok(&["annotate", "nm", "changed", "ticket=1234"]).await?;
    kubectl
        .ok(&["patch", "nm", "changed", "--type=merge", r#"--patch={"spec":{"reason":"merged"}}"#])
        .await?;
    let added = r#"--patch=[{"op":"test","path":"/spec/reason","value":"merged"},
        {"op":"add","path":"/metadata/labels/row","value":"b"}]"#;
    kubectl.ok(&["patch", "nm", "changed", "--type=json", added]).await?;
    let editor = kubectl.clone().with_editor("sed -i 's/reason: merged/reason: edited/'");
    editor.ok(&["edit", "nm", "changed"]).await?;

    let changed = kubectl.object("nm", "changed").await?;
    assert_eq!(changed["metadata"]["labels"], json!({"rack": "7", "row": "b"}));
    assert_eq!(changed["metadata"]["annotations"]["ticket"], "1234");
    assert_eq!(changed["spec"]["reason"], "edited");
    let mut manifest = node_maintenance("changed", "Idle", &["nowhere"]);
    manifest["spec"]["reason"] = "applied".into();
    let said = kubectl.run(&["diff", "-f", "-"], &manifest.to_string()).await?;
    assert!(said.code == 1 && said.out.contains("+  reason: applied"), "{said:?}");
    kubectl.ok(&["delete", "nm", "changed"]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_sees_drained_and_delete_gives_the_node_back() -> Result<()> {
    let shared = shared().await?;
    let (kubectl, node) = (shared.kubectl(), shared.node("drained").await?);
    let namespace = shared.namespace("kubectl-drained").await?;
    namespace.pod("guest", &node, json!({})).await?;
    kubectl.apply(&node_maintenance("drained", "Drain", &[&node])).await?;
    kubectl.ok(&["wait", "nm", "drained", "--for=condition=Drained"]).await?;
    assert!(namespace.kubectl.refused(&["get", "pod", "guest"]).await?.contains("NotFound"));
    let cordoned = ["get", "node", &node, "--output=jsonpath={.spec.unschedulable}"];
    assert_eq!(kubectl.ok(&cordoned).await?, "true");
    // It goes when the controller has completed it, for which kubectl waits.
    kubectl.ok(&["delete", "nm", "drained"]).await?;
    assert_eq!(kubectl.ok(&cordoned).await?, "");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_maintenance_is_refused_with_each_cause() -> Result<()> {
    let kubectl = shared().await?.kubectl();
    let mut wrong = node_maintenance("Wrong_Name", "Drian", &[]);
    wrong["spec"]["drainPlan"] = json!([{"podPriority": 5, "podType": "Deamon"}]);
    let refused = kubectl.apply_refused(&wrong).await?;
    for part in [
        r#"The NodeMaintenance "Wrong_Name" is invalid"#,
        r#"spec.stage: Unsupported value: "Drian": supported values: "Idle", "Cordon", "Drain", "Complete""#,
        "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values: Required value",
        r#"podType: Unsupported value: "Deamon""#,
    ] {
        assert!(refused.contains(part), "{part:?} is not in {refused}");
    }
    let mut unknown = node_maintenance("unknown", "Idle", &["nowhere"]);
    unknown["spec"] = json!({"nodeSelektor": {}});
    let refused = kubectl.apply_refused(&unknown).await?;
    assert!(refused.contains(r#"unknown field "spec.nodeSelektor""#), "{refused}");
    assert!(kubectl.refused(&["get", "nm", "unknown"]).await?.contains("NotFound"));
    Ok(())
}

/// Entries that the server inserts were counted: the second own entry was `drainPlan[5]`.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_of_the_drain_plan_is_named_by_its_place_in_what_was_sent() -> Result<()> {
    let kubectl = shared().await?.kubectl();
    let of = |name: &str, type_: &str| {
        let mut object = node_maintenance(name, "Idle", &["nowhere"]);
        let first = json!({"podPriority": 2000000000, "podType": "Default"});
        object["spec"]["drainPlan"] = json!([first, {"podPriority": i32::MAX, "podType": type_}]);
        object
    };
    kubectl.apply(&of("plan-index", "DaemonSet")).await?;
    let (new, changed) = (of("plan-index-new", "Deamon").to_string(), of("plan-index", "Deamon"));
    let patch = json!({"spec": {"drainPlan": changed["spec"]["drainPlan"]}}).to_string();
    let changed = changed.to_string();
    for (args, sent) in [
        (["create", "-f", "-"].as_slice(), &new),
        (&["apply", "-f", "-"], &new),
        (&["apply", "--server-side", "-f", "-"], &new),
        (&["apply", "-f", "-"], &changed),
        (&["apply", "--server-side", "--force-conflicts", "-f", "-"], &changed),
        (&["replace", "-f", "-"], &changed),
        (&["patch", "nm", "plan-index", "--type=merge", "-p", &patch], &String::new()),
    ] {
        let refused = kubectl.refused_with(args, sent).await?;
        let named = r#"spec.drainPlan[1].podType: Unsupported value: "Deamon""#;
        assert!(refused.contains(named), "{args:?}: {named} is not in {refused}");
        assert!(!refused.contains("error: error:"), "{args:?}: {refused}");
    }
    kubectl.ok(&["delete", "nm", "plan-index"]).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn maintenances_are_found_by_their_stage() -> Result<()> {
    let kubectl = shared().await?.kubectl();
    for (name, stage) in [("stage-idle", "Idle"), ("stage-complete", "Complete")] {
        kubectl.apply(&node_maintenance(name, stage, &["nowhere"])).await?;
    }
    let found = kubectl.ok(&["get", "nm", "--field-selector=spec.stage=Idle", "-o", "name"]).await?;
    assert!(found.contains("/stage-idle\n") && !found.contains("/stage-complete\n"), "{found}");
    let refused = kubectl.refused(&["get", "nm", "--field-selector=spec.stages=Idle"]).await?;
    assert!(refused.contains("is not a known field selector"), "{refused}");
    kubectl.ok(&["delete", "nm", "stage-idle", "stage-complete"]).await.map(drop)
}
