//! An interceptor needs rights on `/status` and no others.

use anyhow::Result;
use drydock_testkit::kinds::{eviction_request_resource, eviction_requests};
use drydock_testkit::wait::until;
use jiff::{Timestamp, Unit};
use k8s_openapi::api::core::v1::Pod;
use kube::Error;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use super::users::{User, rule};
use crate::shared::{ABSENT_INTERCEPTOR, LIMIT, shared};

#[tokio::test(flavor = "multi_thread")]
async fn an_interceptor_with_rights_on_status_alone_reports_by_apply_and_the_pod_goes() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("authz-status").await?;
    let uid = namespace.held_request("p", &shared.node("authz-status").await?).await?;
    let group = eviction_request_resource().group;
    let rights = [
        rule(&group, "evictionrequests", &[], &["get"]),
        rule(&group, "evictionrequests/status", &[], &["patch"]),
        rule(&group, "evictionrequests/interceptor", &[ABSENT_INTERCEPTOR], &["patch"]),
    ];
    let user = User::with_rights(shared, "interceptor", "authz-status", &rights).await?;
    let requests = eviction_requests(&user.client, "authz-status");
    let began = now()?;
    let entry = json!({"startTime": began, "heartbeatTime": began, "message": "working"});
    let reported = apply(&requests, &uid, entry).await?;
    assert_eq!(reported.data["status"]["interceptors"][0]["message"], "working");
    // The same identity on the object itself: RBAC gives it nothing there, whatever it may do to the pod.
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let refused = requests.patch(&uid, &PatchParams::default(), &label).await;
    assert!(matches!(&refused, Err(Error::Api(status)) if status.code == 403), "{refused:?}");

    let entry =
        json!({"startTime": began, "heartbeatTime": began, "completionTime": now()?, "message": "done"});
    apply(&requests, &uid, entry).await?;
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), "authz-status");
    until(pods, "p", LIMIT, "gone", |pod: Option<&Pod>| pod.is_none()).await?;
    namespace.kubectl.ok(&["wait", "evreq", &uid, "--for=condition=Evicted"]).await?;
    let ended = requests.get(&uid).await?;
    let processed = json!([ABSENT_INTERCEPTOR, "imperative-eviction.k8s.io"]);
    assert_eq!(ended.data["status"]["processedInterceptors"], processed);
    assert_eq!(ended.data["status"]["interceptors"][0]["message"], "done");
    Ok(())
}

async fn apply(requests: &Api<DynamicObject>, uid: &str, mut entry: Value) -> Result<DynamicObject> {
    entry["name"] = ABSENT_INTERCEPTOR.into();
    let status = json!({
        "apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest", "metadata": {"name": uid},
        "status": {"interceptors": [entry]},
    });
    let params = PatchParams::apply(ABSENT_INTERCEPTOR).force();
    Ok(requests.patch_status(uid, &params, &Patch::Apply(&status)).await?)
}

fn now() -> Result<Timestamp> {
    Ok(Timestamp::now()
        .round(jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor))?)
}
