//! What kubectl does by strategic merge patches: `patch` without `--type`, and `apply` and `diff` because
//! OpenAPI lists them and has the keys of lists.

use anyhow::Result;
use drydock_testkit::kinds::{self, node_maintenance};
use serde_json::{Value, json};

use crate::shared::shared;

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_patch_merges_lists_by_their_keys_and_follows_directives() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("kubectl-strategic").await?;
    let uid = namespace.held_request("p", &shared.node("kubectl-strategic").await?).await?;
    let kubectl = &namespace.kubectl;
    let patch = async |patch: Value| kubectl.ok(&["patch", "evreq", &uid, &format!("--patch={patch}")]).await;
    let names =
        async || -> Result<Value> { Ok(kubectl.object("evreq", &uid).await?["spec"]["requesters"].clone()) };
    patch(json!({"spec": {"requesters": [{"name": "second.example.com"}]}})).await?;
    let both = json!([{"name": "second.example.com"}, {"name": "test.example.com"}]);
    assert_eq!(names().await?, both);
    patch(json!({"spec": {"requesters": [{"name": "test.example.com", "$patch": "delete"}]},
        "metadata": {"finalizers": ["example.com/a", "example.com/b"], "labels": {"kept": "1"}}}))
    .await?;
    assert_eq!(names().await?, json!([{"name": "second.example.com"}]));
    patch(json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}})).await?;
    let changed = kubectl.object("evreq", &uid).await?;
    let finalizers = changed["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    assert!(finalizers.contains(&json!("example.com/b")) && !finalizers.contains(&json!("example.com/a")));
    let status = json!({"status": {"conditions": [{"type": "Seen", "status": "True", "reason": "Test",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let before = changed["status"]["conditions"].as_array().map_or(0, Vec::len);
    kubectl.ok(&["patch", "evreq", &uid, "--subresource=status", &format!("--patch={status}")]).await?;
    let conditions = kubectl.object("evreq", &uid).await?["status"]["conditions"].clone();
    assert_eq!(conditions.as_array().map_or(0, Vec::len), before + 1, "{conditions}");
    patch(json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/b"]}})).await?;
    Ok(())
}

/// By merge patches, as before, an apply put the whole list back and took the other's requester away.
#[tokio::test(flavor = "multi_thread")]
async fn an_apply_keeps_what_others_added_to_a_list_and_removes_what_it_had_added_itself() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("kubectl-three-way").await?;
    let uid = namespace.held_pod("p", &shared.node("kubectl-three-way").await?).await?;
    let kubectl = &namespace.kubectl;
    let mut manifest = kinds::eviction_request("p", &uid, "first.example.com");
    kubectl.apply(&manifest).await?;
    let other = r#"--patch={"spec":{"requesters":[{"name":"other.example.com"}]}}"#;
    kubectl.ok(&["patch", "evreq", &uid, other]).await?;

    manifest["spec"]["requesters"] = json!([{"name": "second.example.com"}]);
    let said = kubectl.run(&["diff", "-f", "-"], &manifest.to_string()).await?;
    let changes =
        |sign: char| said.out.lines().filter(|l| l.starts_with(sign) && l.contains("- name:")).count();
    assert_eq!((said.code, changes('+'), changes('-')), (1, 1, 1), "{said:?}");
    assert!(kubectl.apply(&manifest).await?.ends_with("configured\n"));
    let spec = kubectl.object("evreq", &uid).await?["spec"].clone();
    assert_eq!(spec["requesters"].as_array().map(Vec::len), Some(2), "{spec}");
    for name in ["other.example.com", "second.example.com"] {
        assert!(spec["requesters"].to_string().contains(name), "{spec}");
    }
    // kubectl sends the order of its own items again, which is the order that they have.
    kubectl.apply(&manifest).await?;
    assert_eq!(kubectl.object("evreq", &uid).await?["spec"], spec);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_that_does_not_fit_is_refused_and_changes_nothing() -> Result<()> {
    let kubectl = shared().await?.kubectl();
    kubectl.apply(&node_maintenance("unfit", "Idle", &["nowhere"])).await?;
    let before = kubectl.object("nm", "unfit").await?["spec"].clone();
    for (patch, words) in [
        (r#"{"spec":{"reason":{}}}"#, "unrecognized type: string"),
        (r#"{"spec":{"odd":1}}"#, r#"unknown field "spec.odd""#),
        (r#"{"spec":{"$patch":"merge"}}"#, "unknown patch type: merge"),
        (r#"{"spec":{"stage":"Drian"}}"#, "Unsupported value"),
    ] {
        let said = kubectl.run(&["patch", "nm", "unfit", "--patch", patch], "").await?;
        // kubectl patch sends no fieldValidation: what is unknown is only warned of.
        assert_eq!(said.code, i32::from(!words.contains("unknown field")), "{said:?}");
        assert!(said.err.contains(words), "{said:?}");
    }
    assert_eq!(kubectl.object("nm", "unfit").await?["spec"], before);
    kubectl.ok(&["delete", "nm", "unfit"]).await?;
    Ok(())
}
