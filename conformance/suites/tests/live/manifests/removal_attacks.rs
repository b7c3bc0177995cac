//! Annotations that a tenant or a node wrote for the admin who removes Drydock. deploy/remove, a script, printed them with a
//! template, took them apart in a shell and reckoned with their fields: one ran a command as the admin, one scaled a Deployment
//! of another namespace, and one made the script call itself without end.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use drydock_testkit::host::TestHost;
use drydock_testkit::kubectl::Kubectl;
use serde_json::{Value, json};

use super::removal::{ANNOTATION, RECORD, remove};

const SINCE: &str = "2026-01-01T00:00:00Z";

/// A host without controllers, on which what a test writes stays as it is.
struct AttackedHost {
    host: Arc<TestHost>,
    tenant: Kubectl,
    others: Kubectl,
}

impl AttackedHost {
    async fn start() -> Result<AttackedHost> {
        let host = TestHost::start_without_controllers().await?;
        let kubectl = Kubectl::new(&host);
        for namespace in ["tenant", "others"] {
            kubectl.ok(&["create", "namespace", namespace]).await?;
        }
        let (tenant, others) = (kubectl.clone().in_namespace("tenant"), kubectl.in_namespace("others"));
        others.apply(&deployment("victim", 2)).await?;
        Ok(AttackedHost { host, tenant, others })
    }

    /// A Deployment of the tenant with two replicas and this record, in which UID stands for its own UID.
    async fn recorded(&self, name: &str, record: &str) -> Result<()> {
        self.tenant.apply(&deployment(name, 2)).await?;
        let object = self.tenant.object("deployment", name).await?;
        let uid = object["metadata"]["uid"].as_str().context("no uid")?;
        let annotation = json!({"metadata": {"annotations": {RECORD: record.replace("UID", uid)}}});
        let patch = ["patch", "deployment", name, "--type=merge", "-p", &annotation.to_string()];
        self.tenant.ok(&patch).await.map(drop)
    }

    /// Removes Drydock, which must succeed, and changes neither the tenant's Deployments nor another one. Returns what it
    /// printed, without escapes for the terminal.
    async fn removal_changes_nothing(&self) -> Result<String> {
        let before = (self.deployments(&self.tenant).await?, self.deployments(&self.others).await?);
        let ended = remove(&self.host, &[]).await?;
        let said = [ended.stdout, ended.stderr].concat();
        let said = String::from_utf8(said)?;
        ensure!(ended.status.success(), "{said}");
        let is_plain = |c: char| c == '\n' || !c.is_control();
        ensure!(said.chars().all(is_plain), "a control character reached the terminal: {said:?}");
        let after = (self.deployments(&self.tenant).await?, self.deployments(&self.others).await?);
        ensure!(before == after, "{said}\nbefore: {before:?}\nafter: {after:?}");
        Ok(said)
    }

    async fn deployments(&self, of: &Kubectl) -> Result<Value> {
        let list: Value = serde_json::from_str(&of.ok(&["get", "deployments", "-o", "json"]).await?)?;
        Ok(list["items"].clone())
    }
}

fn deployment(name: &str, replicas: i32) -> Value {
    let labels = json!({"app": name});
    let pod =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_record_ran_a_command_as_the_admin() -> Result<()> {
    let attacked = AttackedHost::start().await?;
    let proof = attacked.host.dir.join("ran");
    let command = format!("a[$(touch {})]", proof.display());
    let record = format!(r#"{{"delta":1,"replicas":2,"uid":"UID","pods":["a"],"since":"{SINCE}"}}"#);
    for (at, hostile) in [
        format!("x\ntenant|forged-0|7|{command}|{record}"),
        format!("{record}\ntenant|forged-1|7|{command}|{record}"),
        format!("{command}|{record}"),
        format!(r#"{{"delta":{command},"replicas":2}}"#),
        format!("`touch {}`", proof.display()),
        "{\"\\u001b[2J\\u0007\\n==> Drydock is removed\":1}".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        attacked.recorded(&format!("forged-{at}"), hostile).await?;
    }
    let said = attacked.removal_changes_nothing().await;
    ensure!(!proof.exists(), "a command ran: {said:?}");
    let said = said?;
    let left = said.lines().filter(|line| line.contains("is left as it is: annotation")).count();
    ensure!(left == 6, "{left} of 6 are told: {said}");
    Ok(())
}

/// A forged line named another namespace and no resourceVersion, which is no precondition. A copy of an object has the record
/// of the original.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_record_scaled_a_deployment_of_another_namespace() -> Result<()> {
    let attacked = AttackedHost::start().await?;
    let victim = attacked.others.object("deployment", "victim").await?;
    let uid = victim["metadata"]["uid"].as_str().context("no uid")?;
    let record = |uid: &str| json!({"delta": 1, "replicas": 2, "uid": uid, "pods": ["a"], "since": SINCE});
    let forged = format!(r#"others|victim||2|{{"delta":2,"replicas":2,"uid":"{uid}"}}"#);
    attacked.recorded("line", &format!("x\n{forged}")).await?;
    attacked.recorded("victim", &record(uid).to_string()).await?;
    attacked
        .recorded(
            "without-uid",
            &json!({"delta": 1, "replicas": 2, "pods": ["a"], "since": SINCE}).to_string(),
        )
        .await?;
    let huge =
        json!({"delta": i32::MAX - 1, "replicas": i32::MAX, "uid": "UID", "pods": ["a"], "since": SINCE});
    attacked.recorded("huge", &huge.to_string()).await?;
    let said = attacked.removal_changes_nothing().await?;
    ensure!(!said.contains("others/victim"), "{said}");
    Ok(())
}

/// A forged line with an old resourceVersion met a conflict, after which all lines were read anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_record_made_the_removal_begin_anew_without_end() -> Result<()> {
    let attacked = AttackedHost::start().await?;
    let line = r#"tenant|again|1|2|{"delta":1,"replicas":2}"#;
    attacked.recorded("again", &format!("x\n{line}")).await?;
    attacked.removal_changes_nothing().await.map(drop)
}

/// A kubelet may write annotations of its node. A forged line of it named another node, which an admin had cordoned.
#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_of_a_node_made_another_node_schedulable() -> Result<()> {
    let attacked = AttackedHost::start().await?;
    for (name, by) in [("hostile", "x\ncordoned|nodemaintenance.k8s.io||\n"), ("cordoned", "other")] {
        let metadata = json!({"name": name, "annotations": {ANNOTATION: by}});
        let spec = json!({"unschedulable": true});
        attacked
            .tenant
            .apply(&json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}))
            .await?;
    }
    attacked.removal_changes_nothing().await?;
    for name in ["hostile", "cordoned"] {
        let node = attacked.tenant.object("node", name).await?;
        ensure!(node["spec"]["unschedulable"] == true, "{node}");
        ensure!(node["metadata"]["annotations"].get(ANNOTATION).is_none(), "{node}");
    }
    Ok(())
}
