//! EvictionRequests: RBAC on them, and the right to delete the pod.

use std::fmt::Debug;

use anyhow::{Result, bail};
use drydock_testkit::kinds::{eviction_request, eviction_requests};
use kube::Error;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use super::users::{User, rule};
use crate::shared::shared;

const GROUP: &str = "coordination.k8s.io";
const WRITES: [&str; 7] = ["get", "list", "create", "update", "patch", "delete", "deletecollection"];

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_only_get_may_do_nothing_else() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("authz-get").await?;
    let uid = namespace.held_request("p", &shared.node("authz-get").await?).await?;
    let rights = [rule(GROUP, "evictionrequests", &[], &["get"])];
    let user = User::with_rights(shared, "only-gets", "authz-get", &rights).await?;
    let shown = user.kubectl.ok(&["get", "evreq", &uid, "--output=name"]).await?;
    assert_eq!(shown, format!("evictionrequest.coordination.k8s.io/{uid}\n"));
    for verb in [&["get", "evreq"][..], &["delete", "evreq", &uid], &["label", "evreq", &uid, "a=b"]] {
        let refused = user.kubectl.refused(verb).await?;
        assert!(refused.contains(r#"User "only-gets" cannot"#), "{refused}");
    }
    // Above, the host refused before the request reached us; on our own port we refuse.
    let direct = eviction_requests(&user.direct, "authz-get");
    direct.get(&uid).await?;
    let refused = direct.list(&ListParams::default()).await;
    let why = r#"evictionrequests.coordination.k8s.io is forbidden: User "only-gets" cannot list resource "evictionrequests" in API group "coordination.k8s.io" in the namespace "authz-get""#;
    assert_eq!(refusal(refused)?, (403, "Forbidden".into(), why.into()));
    let elsewhere = eviction_requests(&user.direct, "default").get(&uid).await;
    assert_eq!(refusal(elsewhere)?.0, 403);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_delete_the_pod_may_not_write_a_request_for_it() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("authz-pods").await?;
    let node = shared.node("authz-pods").await?;
    let mine = namespace.held_pod("mine", &node).await?;
    let theirs = namespace.held_request("theirs", &node).await?;
    let rights = [rule(GROUP, "evictionrequests", &[], &WRITES), rule("", "pods", &["mine"], &["delete"])];
    let user = User::with_rights(shared, "owns-one-pod", "authz-pods", &rights).await?;
    user.kubectl.apply(&eviction_request("mine", &mine, "test.example.com")).await?;
    user.kubectl.ok(&["label", "evreq", &mine, "a=b"]).await?;
    user.kubectl.ok(&["delete", "evreq", &mine]).await?;

    let why = r#"user "owns-one-pod" must be allowed to delete the target pod"#;
    let other = namespace.held_pod("other", &node).await?;
    let refused = user.kubectl.apply_refused(&eviction_request("other", &other, "test.example.com")).await?;
    assert!(refused.contains(&format!(r#"{why} "other""#)), "{refused}");
    let withdrawn = r#"--patch={"spec":{"requesters":[]}}"#;
    for write in [
        &["label", "evreq", &theirs, "a=b"][..],
        &["patch", "evreq", &theirs, "--type=merge", withdrawn],
        &["delete", "evreq", &theirs],
    ] {
        let refused = user.kubectl.refused(write).await?;
        assert!(refused.contains(&format!(r#"{why} "theirs""#)), "{refused}");
    }
    let there = namespace.kubectl.object("evreq", &theirs).await?;
    assert_eq!(there["spec"]["requesters"], json!([{"name": "test.example.com"}]));
    assert!(there["metadata"]["labels"].get("a").is_none(), "{there}");
    assert!(namespace.kubectl.refused(&["get", "evreq", &other]).await?.contains("NotFound"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletecollection_with_one_that_is_denied_deletes_none() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("authz-many").await?;
    let node = shared.node("authz-many").await?;
    let allowed = namespace.held_request("allowed", &node).await?;
    let denied = namespace.held_request("denied", &node).await?;
    let rights = [rule(GROUP, "evictionrequests", &[], &WRITES), rule("", "pods", &["allowed"], &["delete"])];
    let user = User::with_rights(shared, "owns-some-pods", "authz-many", &rights).await?;
    let requests = eviction_requests(&user.client, "authz-many");
    let refused = requests.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
    let (code, reason, message) = refusal(refused)?;
    assert_eq!((code, reason.as_str()), (403, "Forbidden"), "{message}");
    assert!(message.contains(r#"the target pod "denied""#), "{message}");
    let mut left = vec![allowed.clone(), denied.clone()];
    left.sort();
    assert_eq!(names(&requests).await?, left);

    requests
        .patch(
            &allowed,
            &PatchParams::default(),
            &Patch::Merge(json!({"metadata": {"labels": {"go": "now"}}})),
        )
        .await?;
    let selected = ListParams::default().labels("go=now");
    requests.delete_collection(&DeleteParams::default(), &selected).await?;
    assert_eq!(names(&requests).await?, [denied]);
    Ok(())
}

async fn names(requests: &kube::Api<kube::api::DynamicObject>) -> Result<Vec<String>> {
    let listed = requests.list(&ListParams::default()).await?;
    Ok(listed.items.into_iter().filter_map(|request| request.metadata.name).collect())
}

/// Code, reason and message of what must have been refused.
fn refusal<T: Debug>(answer: Result<T, Error>) -> Result<(u16, String, String)> {
    match answer {
        Err(Error::Api(status)) => Ok((status.code, status.reason.clone(), status.message.clone())),
        other => bail!("not refused: {other:?}"),
    }
}
