//! deploy/remove, on hosts of their own: it removes what is left of Drydock, whatever was deleted before.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use anyhow::{Context, Result, ensure};
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::{TestHost, repository};
use drydock_testkit::kinds::named_node_maintenance;
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::until;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::Api;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::shared::{LIMIT, Namespace};

const ANNOTATION: &str = "nodemaintenance.k8s.io/cordoned-by";
const TAINT: &str = "nodemaintenance.k8s.io/draining-daemonsets";
const RECORD: &str = "surge.coordination.k8s.io/record";
const REGISTERED: &str = "interceptor.evictionrequest.coordination.k8s.io/priority_surge.coordination.k8s.io";

/// The nodes stayed cordoned and tainted forever, and no namespace could be deleted.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_as_before_though_the_api_server_and_the_controllers_went_first() -> Result<()> {
    let site = Site::start().await?;
    site.drydock.kill_manager()?;
    site.drydock.kill_apiserver()?;
    // The state of a drain that has come to DaemonSet pods.
    site.kubectl.ok(&["taint", "node", "free-000", &format!("{TAINT}:NoSchedule")]).await?;
    site.is_removed_by_the_script().await?;
    site.is_as_before().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drydock_that_runs_is_removed_and_a_dry_run_changes_nothing() -> Result<()> {
    let site = Site::start().await?;
    let before = site.kubectl.ok(&["get", "nodes", "-o", "yaml"]).await?;
    let said = remove(&site.drydock.host, &["--dry-run"]).await?;
    for command in ["delete nodemaintenances --all", "delete namespace drydock-system", "patch node free-000"]
    {
        ensure!(said.contains(&format!("kubectl {command}")), "{command:?} is not in {said}");
    }
    let of_nodes = |yaml: &str| yaml.matches(ANNOTATION).count();
    let after = site.kubectl.ok(&["get", "nodes", "-o", "yaml"]).await?;
    assert_eq!(of_nodes(&before), of_nodes(&after));
    site.kubectl.ok(&["get", "nodemaintenance/all"]).await?;
    site.is_removed_by_the_script().await?;
    site.is_as_before().await
}

/// Others work while it runs: a Deployment has another resourceVersion than the one that was read, and a pod is gone.
#[tokio::test(flavor = "multi_thread")]
async fn what_changes_or_goes_in_the_meantime_does_not_end_the_removal() -> Result<()> {
    let site = Site::start().await?;
    let others = site.drydock.host.dir.join("others");
    let in_the_meantime = format!(
        r#"#!/bin/sh
case "$*" in
*' patch deployments surged '*)
    [ -e "$0.changed" ] || {kubectl} annotate deployment surged by=others
    touch "$0.changed" ;;
*' annotate pod surged-'*)
    {kubectl} delete pod "$5" --force ;;
esac >/dev/null 2>&1
exec {kubectl} "$@"
"#,
        kubectl = site.drydock.host.bin.join("kubectl").display()
    );
    std::fs::create_dir(&others)?;
    let script = others.join("kubectl");
    std::fs::write(&script, in_the_meantime)?;
    std::fs::set_permissions(&script, Permissions::from_mode(0o755))?;
    let (said, ()) =
        tokio::try_join!(remove_by(&others, &site.drydock.host, &[]), site.end_with_their_deployments())?;
    for said_of_it in ["it has changed in the meantime", "it has gone in the meantime"] {
        ensure!(said.contains(said_of_it), "{said_of_it:?} is not in {said}");
    }
    site.is_as_before().await
}

/// A cluster in which two nodes have been drained, one of which an admin had cordoned. On a third one runs a pod whose
/// eviction is requested.
struct Site {
    drydock: Drydock,
    kubectl: Kubectl,
}

impl Site {
    async fn start() -> Result<Site> {
        let host = TestHost::start().await?;
        let deploy = repository().join("deploy").display().to_string();
        host.kubectl(&["apply", "--server-side", "-k", &deploy])?;
        let client = host.client().await?;
        // The last one is for the pods of deploy/: a drain does not end that would leave them no node.
        for prefix in ["free", "cordoned", "other"] {
            create_nodes(&client, prefix, 1).await?;
        }
        let kubectl = Kubectl::new(&host);
        kubectl.ok(&["cordon", "cordoned-000"]).await?;
        let drydock = Drydock::start(host, Options::default()).await?;
        let namespace = Namespace::default_of(&drydock).await?;
        let nodes = ["free-000", "cordoned-000"];
        kubectl.apply(&named_node_maintenance("all", "Drain", &nodes)).await?;
        kubectl.ok(&["wait", "nodemaintenance/all", "--for=condition=Drained"]).await?;
        let drained = "--for=condition=Drained";
        kubectl.ok(&["wait", "node/free-000", "node/cordoned-000", drained]).await?;
        leave_surges(&kubectl).await?;
        namespace.held_request("asked", "other-000").await?;
        Ok(Site { drydock, kubectl })
    }

    /// Runs it twice, as it may be run again.
    async fn is_removed_by_the_script(&self) -> Result<()> {
        for _ in 0..2 {
            let host = &self.drydock.host;
            let (said, ()) = tokio::try_join!(remove(host, &[]), self.end_with_their_deployments())?;
            ensure!(!said.contains("rror"), "{said}");
        }
        Ok(())
    }

    /// Ends the programs when their Deployments are deleted, as kubelets would.
    async fn end_with_their_deployments(&self) -> Result<()> {
        let deployments: Api<Deployment> =
            Api::namespaced(self.drydock.host.client().await?, "drydock-system");
        let ends = |found: Option<&Deployment>| found.is_none_or(|d| d.metadata.deletion_timestamp.is_some());
        until(deployments, "drydock-controller-manager", LIMIT, "deleted", ends).await?;
        self.drydock.kill_manager()?;
        self.drydock.kill_apiserver().map(drop)
    }

    async fn is_as_before(&self) -> Result<()> {
        for (name, unschedulable) in [("free-000", Value::Null), ("cordoned-000", Value::Bool(true))] {
            let node = self.kubectl.object("node", name).await?;
            ensure!(node["spec"]["unschedulable"] == unschedulable, "{node}");
            ensure!(node["metadata"]["annotations"][ANNOTATION].is_null(), "{node}");
            ensure!(!node["spec"]["taints"].to_string().contains(TAINT), "{node}");
            let conditions = node["status"]["conditions"].as_array().context("no conditions")?;
            let ours = ["MaintenanceInProgress", "DrainInProgress", "Drained"];
            ensure!(conditions.iter().all(|c| ours.iter().all(|ours| c["type"] != *ours)), "{node}");
            ensure!(conditions.iter().any(|c| c["type"] == "Ready"), "{node}");
        }
        for (name, replicas) in [("surged", 2), ("lowered", 1)] {
            let deployment = self.kubectl.object("deployment", name).await?;
            ensure!(deployment["spec"]["replicas"] == replicas, "{deployment}");
            ensure!(deployment["metadata"]["annotations"].get(RECORD).is_none(), "{deployment}");
        }
        let pods = self.kubectl.ok(&["get", "pods", "-o", "yaml"]).await?;
        ensure!(pods.contains("kind: Pod") && !pods.contains(REGISTERED), "{pods}");
        let asked = self.kubectl.object("pod", "asked").await?;
        ensure!(asked["status"]["phase"] == "Running", "{asked}");
        ensure!(asked["metadata"]["deletionTimestamp"].is_null(), "its request was carried out: {asked}");
        let label = ["-l", "app.kubernetes.io/part-of=drydock", "-o", "name", "--all-namespaces"];
        for kind in ["clusterroles", "clusterrolebindings", "rolebindings", "flowschemas", "apiservices"] {
            let left = self.kubectl.ok(&[&["get", kind], &label[..]].concat()).await?;
            ensure!(left.is_empty(), "{left}");
        }
        // Nothing keeps namespaces from being deleted.
        self.kubectl.ok(&["create", "namespace", "later"]).await?;
        self.kubectl.ok(&["delete", "namespace", "later"]).await.map(drop)
    }
}

/// What an interceptor of surges leaves that is killed in the middle: its own number, and one that the owner has lowered
/// since.
async fn leave_surges(kubectl: &Kubectl) -> Result<()> {
    for (name, replicas) in [("surged", 3), ("lowered", 1)] {
        let record = r#"{"delta":1,"replicas":3,"pods":["u"],"since":"2026-01-01T00:00:00Z"}"#;
        let labels = json!({"app": name});
        let pod =
            json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "annotations": {RECORD: record}},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod},
        });
        kubectl.apply(&deployment).await?;
        kubectl.ok(&["rollout", "status", &format!("deployment/{name}")]).await?;
    }
    let registered = format!("{REGISTERED}=20000/interceptor");
    kubectl.ok(&["annotate", "pods", "--all", &registered]).await.map(drop)
}

async fn remove(host: &TestHost, arguments: &[&str]) -> Result<String> {
    remove_by(&host.bin, host, arguments).await
}

/// With the kubectl of a directory.
async fn remove_by(kubectl: &Path, host: &TestHost, arguments: &[&str]) -> Result<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let Output { status, stdout, stderr } = Command::new(repository().join("deploy/remove"))
        .args(arguments)
        .env("KUBECONFIG", host.admin())
        .env("PATH", format!("{}:{path}", kubectl.display()))
        .kill_on_drop(true)
        .output()
        .await?;
    let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{said}");
    Ok(said)
}
