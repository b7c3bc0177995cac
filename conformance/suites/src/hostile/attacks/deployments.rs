//! Deployments of tenants, and what belongs to them.

use anyhow::Result;
use drydock_testkit::wait::{LIMIT, retry};
use serde_json::{Value, json};

use crate::client::UserRequest;
use crate::context::AttackContext;
use crate::setup::Tenant;

/// With this annotation an owner opts a Deployment in to surges.
pub const OPT_IN: &str = "surge.coordination.k8s.io/enabled";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// The tenant may write Deployments and autoscalers, as an editor may.
pub async fn may_deploy(context: &AttackContext) -> Result<()> {
    let rules = json!([
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]},
        {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["*"]},
    ]);
    let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "scaler"});
    let subjects = [context.tenant.subject()];
    let binding = json!({"metadata": {"name": "scaler"}, "roleRef": role_ref, "subjects": subjects});
    let role = json!({"metadata": {"name": "scaler"}, "rules": rules});
    for (kind, object) in [("roles", role), ("rolebindings", binding)] {
        let path = format!("{RBAC}/namespaces/{}/{kind}", context.tenant.namespace);
        context.setup.done(&UserRequest::post(path, &object)).await?;
    }
    let connection = context.connect_through_host().await?;
    let list = UserRequest::get(format!("{}?limit=1", deployments(&context.tenant)));
    let has_rights = async || Ok(connection.ask_again(&list).await?.code.is_success());
    retry(LIMIT, || "the tenant may not list Deployments".to_owned(), has_rights).await
}

/// Removes what was made: the host's programs work on it.
pub async fn empty(context: &AttackContext, tenant: &Tenant) -> Result<()> {
    let admin = context.setup.admin().await?;
    for path in [deployments(tenant), autoscalers(tenant), budgets(tenant), tenant.requests()] {
        let is_empty = async || Ok(admin.ask_again(&UserRequest::delete(&path)).await?.code.is_success());
        retry(LIMIT, || format!("{path} is not empty"), is_empty).await?;
    }
    Ok(())
}

/// The path of the Deployments of a tenant.
pub fn deployments(tenant: &Tenant) -> String {
    format!("/apis/apps/v1/namespaces/{}/deployments", tenant.namespace)
}

/// The path of its autoscalers.
pub fn autoscalers(tenant: &Tenant) -> String {
    format!("/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers", tenant.namespace)
}

/// The path of its budgets.
pub fn budgets(tenant: &Tenant) -> String {
    format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", tenant.namespace)
}

/// A Deployment that has opted in.
pub fn deployment(name: &str, replicas: usize) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "annotations": {OPT_IN: "true"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "none"}]},
        }},
    })
}

/// The same, of which the host makes no pods.
pub fn paused(mut deployment: Value) -> Value {
    deployment["spec"]["paused"] = json!(true);
    deployment
}

/// The same with pods that find no node.
pub fn nowhere(mut deployment: Value) -> Value {
    deployment["spec"]["template"]["spec"]["nodeSelector"] = json!({"none": "none"});
    deployment
}

/// The same with pods on these nodes.
pub fn on_nodes(mut deployment: Value, nodes: &[String]) -> Value {
    let terms =
        json!([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]}]);
    deployment["spec"]["template"]["spec"]["affinity"] = json!({
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}},
    });
    deployment
}

/// A budget that keeps one pod of a Deployment.
pub fn budget(app: &str) -> Value {
    json!({"metadata": {"name": app}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}})
}

/// An autoscaler with the greatest numbers there are.
pub fn autoscaler(name: &str, target: &str) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": target});
    json!({
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "minReplicas": i32::MAX, "maxReplicas": i32::MAX},
    })
}
