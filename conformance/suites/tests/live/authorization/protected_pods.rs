//! The policy of the guide that lets one user alone have pods evicted, and what it sees of those who ask Drydock for it.

use anyhow::{Result, ensure};
use drydock_api::eviction_request::requester_users::USER_ANNOTATION;
use drydock_testkit::kinds::{eviction_request, named_node_maintenance};
use drydock_testkit::wait::retry;
use http::Method;
use serde_json::{Value, json};

use super::users::{User, rule};
use crate::admission::send;
use crate::guide;
use crate::shared::{LIMIT, Namespace, Shared, shared};

const GROUP: &str = "coordination.k8s.io";
/// The namespace whose pods the guide protects.
const NAMESPACE: &str = "payments";
/// The name of the policy.
const POLICY: &str = "protected-pods";
const ACCOUNT: &str = "system:serviceaccount:drydock-system:drydock-controller-manager";

/// The host saw the account of the controllers alone: whoever might delete a pod by RBAC had it evicted past the policy.
#[tokio::test(flavor = "multi_thread")]
async fn the_policy_of_the_guide_admits_an_eviction_for_one_user_and_refuses_it_for_another() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace(NAMESPACE).await?;
    let node = shared.node(NAMESPACE).await?;
    protect(&namespace, &node).await?;
    let rights = [
        rule(GROUP, "evictionrequests", &[], &["get", "create", "patch"]),
        rule("", "pods", &[], &["delete"]),
    ];
    let ann = User::with_rights(shared, "ann", NAMESPACE, &rights).await?;
    let bob = User::with_rights(shared, "bob", NAMESPACE, &rights).await?;
    let (kept, gone) =
        (namespace.pod("kept", &node, json!({})).await?, namespace.pod("gone", &node, json!({})).await?);

    let mut forged = eviction_request("kept", &kept, "bob.example.com");
    forged["spec"]["requesterUsers"] = json!([{"requester": "bob.example.com", "username": "ann"}]);
    bob.kubectl.apply(&forged).await?;
    let blocked = format!("--for=jsonpath={{.status.interceptors[0].blocked.name}}={POLICY}");
    namespace.kubectl.ok(&["wait", "evreq", &kept, &blocked]).await?;
    let request = namespace.kubectl.object("evreq", &kept).await?;
    let bobs = json!([{"requester": "bob.example.com", "username": "bob"}]);
    assert_eq!(request["spec"]["requesterUsers"], bobs);
    says(&request["status"]["interceptors"][0], "and those who ask are: bob")?;

    ann.kubectl.apply(&eviction_request("gone", &gone, "ann.example.com")).await?;
    namespace.kubectl.ok(&["wait", "evreq", &gone, "--for=condition=Evicted"]).await?;
    assert_eq!(namespace.kubectl.object("pod", "kept").await?["metadata"]["uid"], json!(kept));
    drains(shared, &namespace).await
}

/// Of a drain the policy sees who asks for the maintenance.
async fn drains(shared: &Shared, namespace: &Namespace) -> Result<()> {
    let admin = shared.kubectl();
    let rights = [
        rule(GROUP, "nodemaintenances", &[], &["get", "create", "patch"]),
        rule("", "nodes", &[], &["delete"]),
    ];
    for (name, until) in [
        ("bob", "--for=jsonpath={.status.nodeStatuses[0].blockers[0].reason}=AdmissionWebhook"),
        ("ann", "--for=condition=WorkloadsDrained"),
    ] {
        let node = shared.node(&format!("{NAMESPACE}-{name}")).await?;
        namespace.pod(&format!("drained-by-{name}"), &node, json!({})).await?;
        let user = User::with_rights(shared, name, "", &rights).await?;
        let maintenance = format!("{NAMESPACE}-{name}");
        let mut asked = named_node_maintenance(&maintenance, "Drain", &[&node]);
        asked["spec"]["username"] = json!("ann");
        user.kubectl.apply(&asked).await?;
        admin.ok(&["wait", "nm", &maintenance, until]).await?;
        let seen = admin.object("nm", &maintenance).await?;
        assert_eq!(seen["spec"]["username"], json!(name));
        if name == "bob" {
            let blocker = &seen["status"]["nodeStatuses"][0]["blockers"][0];
            ["and those who ask are: ", "bob", ACCOUNT].iter().try_for_each(|words| says(blocker, words))?;
        }
        admin.ok(&["delete", "nm", &maintenance]).await?;
    }
    namespace.kubectl.ok(&["get", "pod", "drained-by-bob"]).await?;
    ensure!(namespace.kubectl.refused(&["get", "pod", "drained-by-ann"]).await?.contains("NotFound"));
    Ok(())
}

fn says(entry: &Value, words: &str) -> Result<()> {
    let message = entry["message"].as_str().unwrap_or_default();
    ensure!(message.contains(words), "{words:?} is not in {message:?}");
    Ok(())
}

/// Applies the policy, and waits until it refuses the eviction of a pod by the admin, who is not its user, and says that one is.
async fn protect(namespace: &Namespace, node: &str) -> Result<()> {
    let policy = guide::file("protected-pods.yaml")?;
    let said = namespace.kubectl.run(&["apply", "-f", "-"], &policy).await?;
    ensure!(said.code == 0, "{said:?}");
    namespace.pod("probe", node, json!({})).await?;
    let uri = format!("/api/v1/namespaces/{NAMESPACE}/pods/probe/eviction?dryRun=All");
    let annotations = json!({ (format!("{USER_ANNOTATION}0")): "ann" });
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": "probe", "namespace": NAMESPACE, "annotations": annotations},
    });
    let is_refused = async || {
        let answer = send(&namespace.client, Method::POST, &uri, Some(&eviction)).await?;
        Ok(answer.body.to_string().contains(POLICY))
    };
    retry(LIMIT, || "the policy is not in force".to_owned(), is_refused).await
}
