//! Namespaces: the host's namespace controller empties them of our objects, and nothing new comes in meanwhile.

use std::collections::BTreeSet;

use anyhow::Result;
use drydock_testkit::host::audit;
use drydock_testkit::kinds::{eviction_request, eviction_requests};
use drydock_testkit::wait::until;
use k8s_openapi::api::core::v1::Namespace;
use kube::Error;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::Status;
use serde_json::{Value, json};

use crate::shared::{LIMIT, shared};

const SOME_UID: &str = "0a3c1a1c-7f3e-4f5e-9d0e-0123456789ab";

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_takes_its_requests_with_it() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("ns-emptied").await?;
    let node = shared.node("ns-emptied").await?;
    namespace.held_request("one", &node).await?;
    namespace.held_request("two", &node).await?;
    namespace.kubectl.ok(&["delete", "namespace", "ns-emptied"]).await?;
    assert_eq!(namespace.kubectl.ok(&["get", "evreq", "--output=name"]).await?, "");
    Ok(())
}

/// The host was asked about every pod of the namespace, one after another.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_of_many_requests_is_deleted_with_few_reviews() -> Result<()> {
    const MANY: usize = 300;
    let shared = shared().await?;
    let namespace = shared.namespace("ns-many").await?;
    let requests = eviction_requests(&namespace.client, "ns-many");
    for i in 0..MANY {
        let request = eviction_request("p", &format!("0a3c1a1c-7f3e-4f5e-9d0e-{i:012}"), "test.example.com");
        requests.create(&PostParams::default(), &serde_json::from_value(request)?).await?;
    }
    namespace.kubectl.ok(&["delete", "namespace", "ns-many"]).await?;
    let log = audit::requests(&shared.drydock.host.audit_log())?;
    let reviews = log.iter().filter(|request| request.object_ref.resource == "subjectaccessreviews");
    let about_pods = reviews.map(|review| &review.request_object["spec"]).filter(|spec| {
        let about = &spec["resourceAttributes"];
        about["resource"] == "pods" && about["namespace"] == "ns-many"
    });
    // One question may be asked again, as an answer is good for 10 s. The namespace controller, the garbage collector and
    // our own controllers each have a few.
    let different: BTreeSet<String> = about_pods.map(Value::to_string).collect();
    assert!((1..=20).contains(&different.len()), "for {MANY} requests the host was asked {different:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finalizer_holds_the_namespace_and_nothing_is_created_in_it_meanwhile() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("ns-held").await?;
    let kubectl = &namespace.kubectl;
    let uid = namespace.held_request("p", &shared.node("ns-held").await?).await?;
    let finalizers = |list: &str| format!(r#"--patch={{"metadata":{{"finalizers":{list}}}}}"#);
    kubectl.ok(&["patch", "evreq", &uid, "--type=merge", &finalizers(r#"["example.com/hold"]"#)]).await?;
    kubectl.ok(&["delete", "namespace", "ns-held", "--wait=false"]).await?;
    let remains = "NamespaceFinalizersRemaining";
    kubectl.ok(&["wait", "namespace", "ns-held", &format!("--for=condition={remains}")]).await?;

    let refused = create_refused(&namespace.client, "ns-held").await?;
    assert_eq!((refused.code, refused.reason.as_str()), (403, "Forbidden"), "{refused:?}");
    assert!(refused.message.ends_with("in namespace ns-held because it is being terminated"), "{refused:?}");
    let causes = refused.details.map(|details| details.causes).unwrap_or_default();
    assert_eq!(causes.first().map(|cause| cause.reason.as_str()), Some("NamespaceTerminating"));

    kubectl.ok(&["patch", "evreq", &uid, "--type=merge", &finalizers("[]")]).await?;
    let namespaces: Api<Namespace> = Api::all(namespace.client.clone());
    until(namespaces, "ns-held", LIMIT, "gone", |found: Option<&Namespace>| found.is_none()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_created_in_a_namespace_that_is_not_there() -> Result<()> {
    let shared = shared().await?;
    let refused = create_refused(&shared.drydock.host.client().await?, "ns-absent").await?;
    assert_eq!((refused.code, refused.reason.as_str()), (404, "NotFound"), "{refused:?}");
    assert_eq!(refused.message, r#"namespaces "ns-absent" not found"#);
    // The host answers the same for its own objects.
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"}});
    let hosts = shared.kubectl().in_namespace("ns-absent").apply_refused(&lease).await?;
    assert!(hosts.contains(&refused.message), "{hosts}");
    Ok(())
}

async fn create_refused(client: &kube::Client, namespace: &str) -> Result<Status> {
    let request: DynamicObject = serde_json::from_value(eviction_request("p", SOME_UID, "test.example.com"))?;
    match eviction_requests(client, namespace).create(&PostParams::default(), &request).await {
        Err(Error::Api(status)) => Ok(*status),
        other => anyhow::bail!("not refused: {other:?}"),
    }
}
