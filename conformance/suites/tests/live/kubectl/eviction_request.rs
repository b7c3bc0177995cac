//! EvictionRequests by hand.

use anyhow::Result;
use drydock_testkit::kinds;
use serde_json::json;

use super::words;
use crate::shared::{ABSENT_INTERCEPTOR, shared};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_applied_shown_described_and_deleted() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("kubectl-shown").await?;
    let uid = namespace.held_request("p", &shared.node("kubectl-shown").await?).await?;
    let kubectl = &namespace.kubectl;
    let unchanged = kubectl.apply(&kinds::eviction_request("p", &uid, "test.example.com")).await?;
    assert_eq!(unchanged, format!("evictionrequest.coordination.k8s.io/{uid} unchanged\n"));

    let table = kubectl.ok(&["get", "evreq"]).await?;
    let names = ["NAME", "POD", "REQUESTERS", "ACTIVE", "STATE", "ETA", "AGE"];
    let row = [uid.as_str(), "p", "test.example.com", ABSENT_INTERCEPTOR, "Intercepting"];
    assert!(words(&table).starts_with(&[&names[..], &row[..]].concat()), "{table}");
    let wide = kubectl.ok(&["get", "evreq", "--output=wide"]).await?;
    let names = [&names[..], &["NODE", "MAINTENANCE", "HEARTBEAT", "PROCESSED", "MESSAGE"]].concat();
    assert!(words(&wide).starts_with(&names), "{wide}");
    let described = kubectl.ok(&["describe", "evreq", &uid]).await?;
    for part in ["Kind:         EvictionRequest", "Activation Time:", "imperative-eviction.k8s.io"] {
        assert!(described.contains(part), "{part:?} is not in {described}");
    }

    let deleted = kubectl.ok(&["delete", "evreq", &uid]).await?;
    assert!(deleted.contains(&format!("evictionrequest.coordination.k8s.io \"{uid}\" deleted")), "{deleted}");
    // The pod was only asked to leave: without the request it stays.
    assert_eq!(
        kubectl.ok(&["get", "pod", "p", "--output=jsonpath={.metadata.deletionTimestamp}"]).await?,
        ""
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_labelled_annotated_patched_and_edited() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("kubectl-changed").await?;
    let uid = namespace.held_request("p", &shared.node("kubectl-changed").await?).await?;
    let kubectl = &namespace.kubectl;
    kubectl.ok(&["label", "evreq", &uid, "wave=1"]).await?;
    kubectl.ok(&["annotate", "evreq", &uid, "ticket=1234"]).await?;
    let merge = r#"--patch={"spec":{"requesters":[{"name":"merged.example.com"}]}}"#;
    kubectl.ok(&["patch", "evreq", &uid, "--type=merge", merge]).await?;
    let json_patch =
        r#"--patch=[{"op":"add","path":"/spec/requesters/-","value":{"name":"added.example.com"}}]"#;
    kubectl.ok(&["patch", "evreq", &uid, "--type=json", json_patch]).await?;
    let editor = kubectl.clone().with_editor("sed -i s/merged.example.com/edited.example.com/");
    editor.ok(&["edit", "evreq", &uid]).await?;

    let changed = kubectl.object("evreq", &uid).await?;
    assert_eq!(changed["metadata"]["labels"]["wave"], "1");
    assert_eq!(changed["metadata"]["annotations"]["ticket"], "1234");
    let requesters = json!([{"name": "edited.example.com"}, {"name": "added.example.com"}]);
    assert_eq!(changed["spec"]["requesters"], requesters);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn requesters_come_and_go_by_server_side_apply_and_the_last_one_cancels() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("kubectl-requesters").await?;
    let uid = namespace.held_pod("p", &shared.node("kubectl-requesters").await?).await?;
    let kubectl = &namespace.kubectl;
    let apply = async |manager: &str, requesters: serde_json::Value| {
        let mut object = kinds::eviction_request("p", &uid, "nobody.example.com");
        object["spec"]["requesters"] = requesters;
        let manager = format!("--field-manager={manager}");
        kubectl.run(&["apply", "--server-side", &manager, "-f", "-"], &object.to_string()).await
    };
    for who in ["first", "second"] {
        let said = apply(who, json!([{"name": format!("{who}.example.com")}])).await?;
        assert_eq!(said.code, 0, "{said:?}");
    }
    let names = ["get", "evreq", &uid, "--output=jsonpath={.spec.requesters[*].name}"];
    assert_eq!(kubectl.ok(&names).await?, "first.example.com second.example.com");
    for who in ["first", "second"] {
        let said = apply(who, json!([])).await?;
        assert_eq!(said.code, 0, "{said:?}");
    }
    kubectl.ok(&["wait", "evreq", &uid, "--for=condition=Canceled"]).await?;
    let reason =
        ["get", "evreq", &uid, "--output=jsonpath={.status.conditions[?(@.type=='Canceled')].reason}"];
    assert_eq!(kubectl.ok(&reason).await?, "NoRequesters");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_request_is_refused_with_each_cause() -> Result<()> {
    let kubectl = shared().await?.kubectl();
    let mut wrong = kinds::eviction_request("p", "6fed92c7-35be-4798-9a75-c0c374088df8", "me");
    wrong["metadata"]["name"] = "wrong".into();
    let refused = kubectl.apply_refused(&wrong).await?;
    for part in [
        r#"The EvictionRequest "wrong" is invalid"#,
        r#"metadata.name: Invalid value: "wrong": must be equal to spec.target.pod.uid"#,
        r#"spec.requesters[0].name: Invalid value: "me": should be a domain with at least two segments"#,
    ] {
        assert!(refused.contains(part), "{part:?} is not in {refused}");
    }
    assert!(kubectl.refused(&["get", "evreq", "wrong"]).await?.contains("NotFound"));
    Ok(())
}
