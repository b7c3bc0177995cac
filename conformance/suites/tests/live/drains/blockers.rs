//! Blockers: what keeps a drain waiting, and how it is reported.

use anyhow::{Context, Result, ensure};
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::kinds::{eviction_requests, named_node_maintenance, node_maintenances};
use drydock_testkit::wait::{retry, until};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{LIMIT, budget, deployment, drained, pod, priority_class};
use crate::shared::{Namespace, shared};

/// Each of its pods was new, so that nothing backed off and no blocker came.
#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_tolerates_everything_is_a_blocker_by_name() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("returns").await?;
    let node = shared.node("returns").await?;
    let pods = json!({
        "nodeSelector": {"kubernetes.io/hostname": node}, "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "none"}],
    });
    namespace.kubectl.apply(&deployment("stubborn", 1, pods)).await?;
    namespace.kubectl.ok(&["rollout", "status", "deployment/stubborn"]).await?;
    namespace.kubectl.apply(&named_node_maintenance("returns", "Drain", &[&node])).await?;
    blocked(&namespace.client, "returns", "WorkloadReturns", "(Deployment stubborn)").await?;
    namespace.kubectl.ok(&["delete", "deployment/stubborn"]).await?;
    drained(&namespace.client, "returns", "True").await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/returns"]).await.map(drop)
}

/// `kubectl describe` prints the status after the spec with its twelve entries, and the blockers at its very
/// end: nobody found them. The conditions are first in the status, and say it.
#[tokio::test(flavor = "multi_thread")]
async fn describe_answers_what_blocks_since_when_and_what_to_do() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("describes").await?;
    let node = shared.node("describes").await?;
    namespace.kubectl.apply(&budget("kept")).await?;
    namespace.pod("kept", &node, json!({})).await?;
    namespace.kubectl.apply(&named_node_maintenance("describes", "Drain", &[&node])).await?;
    blocked(&namespace.client, "describes", "PodDisruptionBudget", "").await?;
    let said = namespace.kubectl.ok(&["describe", "nodemaintenance/describes"]).await?;
    let status = said.split("\nStatus:").nth(1).context("no status")?;
    ensure!(status.trim_start().starts_with("Conditions:"), "{status}");
    let messages = status.lines().filter_map(|line| line.trim().strip_prefix("Message:"));
    let what = format!(
        "1 pod is left on 1 of 1 node. 1 of them is blocked, 1 by PodDisruptionBudget: pod describes/kept on node {node} since 20"
    );
    let answer = messages.map(str::trim).find(|message| message.starts_with(&what));
    let answer = answer.with_context(|| format!("no answer in {status}"))?;
    ensure!(answer.contains("Z: ") && answer.contains(" in controllers/README.md). "), "{answer}");
    namespace.kubectl.ok(&["delete", "poddisruptionbudget/kept"]).await?;
    drained(&namespace.client, "describes", "True").await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/describes"]).await.map(drop)
}

/// One node that cannot be cordoned kept every pod of the maintenance where it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_be_cordoned_does_not_hold_the_others() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("refused").await?;
    let nodes = create_nodes(&namespace.client, "refused", 2).await?;
    let [refused, free] = nodes.as_slice() else { anyhow::bail!("{nodes:?}") };
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    priority_class(&namespace.client, "refused", 100).await?;
    for node in &nodes {
        pod(&pods, node, node, "refused", json!({})).await?;
    }
    refuse_cordon(&namespace, refused).await?;
    namespace.kubectl.apply(&named_node_maintenance("refused", "Drain", &[refused, free])).await?;
    let gone = |pod: Option<&Pod>| pod.is_none();
    until(pods.clone(), free, LIMIT, "gone", gone).await?;
    blocked(&namespace.client, "refused", "NodeUpdateRefused", "this node stays as it is").await?;
    let policy = ["delete", "validatingadmissionpolicybinding/refused", "validatingadmissionpolicy/refused"];
    namespace.kubectl.ok(&policy).await?;
    drained(&namespace.client, "refused", "True").await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/refused"]).await.map(drop)
}

/// Its pods never finish terminating. The command that the blocker names lets the host remove them.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_kubelet_is_away_is_named_with_the_way_out() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("unreachable").await?;
    let nodes: Api<Node> = Api::all(namespace.client.clone());
    let size = json!({"cpu": "32", "memory": "256Gi", "pods": "110"});
    let node =
        json!({"metadata": {"name": "unreachable"}, "status": {"allocatable": size, "capacity": size}});
    nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    let ready = json!({"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = Patch::Strategic(json!({"status": {"conditions": [ready]}}));
    nodes.patch_status("unreachable", &PatchParams::default(), &status).await?;
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    let bound: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {"nodeName": "unreachable", "containers": [{"name": "c", "image": "none"}],
                 "tolerations": [{"operator": "Exists"}]},
    }))?;
    pods.create(&PostParams::default(), &bound).await?;
    namespace.kubectl.apply(&named_node_maintenance("unreachable", "Drain", &["unreachable"])).await?;
    let message = blocked(&namespace.client, "unreachable", "NodeUnreachable", "kubectl taint").await?;
    let command = message.split("kubectl ").nth(1).context("no command")?;
    namespace.kubectl.ok(&command.split_whitespace().collect::<Vec<_>>()).await?;
    drained(&namespace.client, "unreachable", "True").await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/unreachable", "node/unreachable"]).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_never_allows_and_one_that_is_short_now_are_told_apart() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("budgets").await?;
    let node = shared.node("budgets").await?;
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    priority_class(&namespace.client, "budgets", 100).await?;
    pod(&pods, "never", &node, "budgets", json!({"app": "never"})).await?;
    namespace.kubectl.apply(&budget("never")).await?;
    // The second of two pods finds no room.
    let term =
        json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "short"}}});
    let two = json!({
        "nodeSelector": {"kubernetes.io/hostname": node}, "containers": [{"name": "c", "image": "none"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    });
    namespace.kubectl.apply(&budget("short")).await?;
    namespace.kubectl.apply(&deployment("short", 2, two)).await?;
    namespace.kubectl.ok(&["wait", "deployment/short", "--for=jsonpath={.status.readyReplicas}=1"]).await?;
    let healthy = "--for=jsonpath={.status.currentHealthy}=1";
    namespace.kubectl.ok(&["wait", "pdb/short", "pdb/never", healthy]).await?;
    namespace.kubectl.apply(&named_node_maintenance("budgets", "Drain", &[&node])).await?;
    for (name, state) in [("never", "NeverAllows"), ("short", "ShortNow")] {
        let late = || format!("no request says {state} of {name}");
        retry(LIMIT, late, async || is_blocked_by(&namespace, name, state).await).await?;
    }
    // Its owner looks at the pod, and never at an object that is named by a UID.
    let start = format!("Eviction of pod never for NodeMaintenance budgets (a test) on node {node}: ");
    let late = || format!("kubectl describe pod does not say: {start}");
    retry(LIMIT, late, async || {
        let shown = namespace.kubectl.ok(&["describe", "pod/never"]).await?;
        let events: Vec<&str> = shown.lines().filter(|line| line.contains("EvictionBlocked")).collect();
        Ok(events.iter().any(|line| line.contains(&start) && line.contains("(see NeverAllows in ")))
    })
    .await?;
    namespace.kubectl.ok(&["delete", "pdb/never", "pdb/short", "deployment/short"]).await?;
    drained(&namespace.client, "budgets", "True").await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/budgets"]).await?;
    // It is there for the owner to read when the pod and the maintenance are gone, with what the event said.
    let named = ["get", "evictionrequests", "--field-selector=spec.target.pod.name=never", "-o", "json"];
    let kept: Value = serde_json::from_str(&namespace.kubectl.ok(&named).await?)?;
    let report = &kept["items"][0]["status"]["interceptors"][0];
    ensure!(report["lastBlocked"]["state"] == "NeverAllows", "the request that is kept: {kept}");
    Ok(())
}

/// Whether a request is blocked by this budget in this way.
async fn is_blocked_by(namespace: &Namespace, budget: &str, state: &str) -> Result<bool> {
    let requests = eviction_requests(&namespace.client, &namespace.name).list(&Default::default()).await?;
    let entries = requests.iter().filter_map(|request| request.data["status"]["interceptors"].as_array());
    let is_it = |blocked: &Value| {
        blocked["reason"] == "PodDisruptionBudget" && blocked["name"] == budget && blocked["state"] == state
    };
    Ok(entries.flatten().any(|entry| is_it(&entry["blocked"])))
}

/// Waits until a maintenance has a blocker of this reason whose message has these words; returns the message.
pub(super) async fn blocked(client: &Client, maintenance: &str, reason: &str, words: &str) -> Result<String> {
    let message = |object: Option<&DynamicObject>| {
        let nodes = object?.data["status"]["nodeStatuses"].as_array()?;
        let mut blockers = nodes.iter().filter_map(|node| node["blockers"].as_array()).flatten();
        let found =
            blockers.find(|b| b["reason"] == reason && b["message"].as_str().unwrap_or("").contains(words));
        Some(found?["message"].as_str()?.to_owned())
    };
    let has_blocker = |object: Option<&DynamicObject>| message(object).is_some();
    let what = format!("blocked by {reason}: {words}");
    let found = until(node_maintenances(client), maintenance, LIMIT, &what, has_blocker).await?;
    message(found.as_ref()).context("no blocker")
}

/// A policy by which a node cannot be made unschedulable, as soon as the host follows it.
async fn refuse_cordon(namespace: &Namespace, node: &str) -> Result<()> {
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]});
    let expression =
        format!("object.metadata.name != '{node}' || !object.spec.?unschedulable.orValue(false)");
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "refused"},
        "spec": {"matchConstraints": {"resourceRules": [rule]},
                 "validations": [{"expression": expression, "message": "this node stays as it is"}]},
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "refused"}, "spec": {"policyName": "refused", "validationActions": ["Deny"]},
    });
    namespace.kubectl.apply(&policy).await?;
    namespace.kubectl.apply(&binding).await?;
    let late = || format!("{node} can still be cordoned");
    let unschedulable = json!({"spec": {"unschedulable": true}}).to_string();
    let cordon = ["patch", "node", node, "--type=merge", "--dry-run=server", "-p", &unschedulable];
    retry(LIMIT, late, async || Ok(namespace.kubectl.ok(&cordon).await.is_err())).await
}
