//! Users with rights of a test's own.

use std::path::PathBuf;

use anyhow::Result;
use drydock_testkit::host::client_of;
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::allowed;
use kube::Client;
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::shared::{LIMIT, Shared};

/// Somebody with a client certificate.
pub struct User {
    /// Through the aggregator.
    pub kubectl: Kubectl,
    /// Through the aggregator.
    pub client: Client,
    /// To our port.
    pub direct: Client,
}

/// A rule of a role: verbs on a resource of ours, or of the core group.
pub fn rule(group: &str, resource: &str, names: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "resourceNames": names, "verbs": verbs})
}

impl User {
    /// A user with these rights: in a namespace, or in the whole cluster where that is empty. The host knows of them
    /// when this returns, so that no refusal is remembered that was true only for a moment.
    pub async fn with_rights(shared: &Shared, name: &str, namespace: &str, rules: &[Value]) -> Result<User> {
        let host = &shared.drydock.host;
        let admin = shared.kubectl().in_namespace(if namespace.is_empty() { "default" } else { namespace });
        let prefix = if namespace.is_empty() { "Cluster" } else { "" };
        let rbac = "rbac.authorization.k8s.io";
        let object = |kind: &str| json!({"apiVersion": format!("{rbac}/v1"), "kind": format!("{prefix}{kind}"), "metadata": {"name": name}});
        let (mut role, mut binding) = (object("Role"), object("RoleBinding"));
        role["rules"] = rules.into();
        binding["roleRef"] = json!({"apiGroup": rbac, "kind": format!("{prefix}Role"), "name": name});
        binding["subjects"] = json!([{"apiGroup": rbac, "kind": "User", "name": name}]);
        admin.apply(&role).await?;
        admin.apply(&binding).await?;
        let client = host.client().await?;
        for mut question in rules.iter().flat_map(questions) {
            question["namespace"] = namespace.into();
            let spec = json!({"user": name, "resourceAttributes": question});
            allowed(&client, &serde_json::from_value(json!({"spec": spec}))?, LIMIT).await?;
        }
        let kubeconfig: PathBuf = host.kubeconfig(name, &[])?;
        let direct = shared.drydock.direct_as(Kubeconfig::read_from(&kubeconfig)?).await?;
        let kubectl = admin.with_kubeconfig(&kubeconfig);
        Ok(User { kubectl, client: client_of(&kubeconfig).await?, direct })
    }
}

/// One question for each right that a rule gives.
fn questions(rule: &Value) -> Vec<Value> {
    let texts = |key: &str| -> Vec<&str> {
        rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let names = texts("resourceNames");
    let names = if names.is_empty() { vec![""] } else { names };
    let (resource, subresource) = match texts("resources").first() {
        Some(whole) => whole.split_once('/').unwrap_or((whole, "")),
        None => ("", ""),
    };
    let group = rule["apiGroups"][0].clone();
    let ask = |verb: &str, name: &str| json!({"group": group, "resource": resource, "subresource": subresource, "verb": verb, "name": name});
    texts("verbs").iter().flat_map(|verb| names.iter().map(|name| ask(verb, name))).collect()
}
