//! `drydock-controller-manager remove`, on hosts of their own: it removes what is left of Drydock, whatever was deleted before.

use std::process::Output;

use anyhow::{Context, Result, ensure};
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::drydock::{Drydock, MANAGER, Options, program};
use drydock_testkit::host::{TestHost, repository};
use drydock_testkit::kinds::named_node_maintenance;
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::{retry, until};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::Api;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::admission::webhook_server::WebhookServer;
use crate::shared::{LIMIT, Namespace};

pub const ANNOTATION: &str = "nodemaintenance.k8s.io/cordoned-by";
const TAINT: &str = "nodemaintenance.k8s.io/draining-daemonsets";
pub const RECORD: &str = "surge.coordination.k8s.io/record";
const REGISTERED: &str = "interceptor.evictionrequest.coordination.k8s.io/priority_surge.coordination.k8s.io";

/// The nodes stayed cordoned and tainted forever, and no namespace could be deleted.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_as_before_though_the_api_server_and_the_controllers_went_first() -> Result<()> {
    let site = Site::start().await?;
    site.drydock.kill_manager()?;
    site.drydock.kill_apiserver()?;
    // The state of a drain that has come to DaemonSet pods.
    site.kubectl.ok(&["taint", "node", "free-000", &format!("{TAINT}:NoSchedule")]).await?;
    site.is_removed().await?;
    site.is_as_before().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drydock_that_runs_is_removed_and_a_dry_run_changes_nothing() -> Result<()> {
    let site = Site::start().await?;
    let before = site.kubectl.ok(&["get", "nodes", "-o", "yaml"]).await?;
    let said = removed(&site.drydock.host, &["--dry-run"]).await?;
    for change in [
        "would delete NodeMaintenance all\n",
        "would delete APIService v1alpha1.coordination.k8s.io\n",
        "would delete Deployment drydock-system/drydock-controller-manager\n",
        "would delete Namespace drydock-system\n",
        "would delete ClusterRole drydock:maintainer\n",
        "would change Deployment default/surged: spec.replicas from 3 to 2, ",
        "would change Deployment default/lowered: spec.replicas stays 1, ",
        "would change Node free-000: it is schedulable, ",
        "would change Node free-000: without the conditions MaintenanceInProgress, DrainInProgress, Drained\n",
        "would change Node cordoned-000: without the annotation ",
    ] {
        ensure!(said.contains(change), "{change:?} is not in {said}");
    }
    let of_nodes = |yaml: &str| yaml.matches(ANNOTATION).count();
    let after = site.kubectl.ok(&["get", "nodes", "-o", "yaml"]).await?;
    assert_eq!(of_nodes(&before), of_nodes(&after));
    site.kubectl.ok(&["get", "nodemaintenance/all"]).await?;
    site.is_removed().await?;
    site.is_as_before().await
}

/// Others work while it runs: a Deployment has another resourceVersion than the one that was read, and a pod is gone. A webhook
/// holds each of the two writes until that has happened.
#[tokio::test(flavor = "multi_thread")]
async fn what_changes_or_goes_in_the_meantime_does_not_end_the_removal() -> Result<()> {
    let site = Site::start().await?;
    let pods = site.kubectl.ok(&["get", "pods", "-l", "app=surged", "-o", "name"]).await?;
    let pod = pods.lines().next().context("no pod")?.to_owned();
    // The removal scales the Deployment down: its ReplicaSet deletes another pod.
    site.kubectl.ok(&["annotate", &pod, "controller.kubernetes.io/pod-deletion-cost=1"]).await?;
    let changed = HeldWrites::of(&site, "deployments", "surged").await?;
    let gone = HeldWrites::of(&site, "pods", pod.trim_start_matches("pod/")).await?;
    let in_the_meantime = async {
        changed.until_asked().await?;
        site.kubectl.ok(&["annotate", "deployment", "surged", "by=others"]).await?;
        changed.server.release();
        gone.until_asked().await?;
        site.kubectl.ok(&["delete", &pod, "--force"]).await?;
        gone.server.release();
        Ok(())
    };
    let (said, (), ()) = tokio::try_join!(
        removed(&site.drydock.host, &[]),
        site.end_with_their_deployments(),
        in_the_meantime
    )?;
    for said_of_it in ["surged has changed in the meantime", "has gone in the meantime"] {
        ensure!(said.contains(said_of_it), "{said_of_it:?} is not in {said}");
    }
    site.is_as_before().await
}

/// A webhook that holds the writes of the removal to one object.
struct HeldWrites {
    server: WebhookServer,
}

impl HeldWrites {
    /// Configures it, and waits until the host asks it.
    async fn of(site: &Site, plural: &str, name: &str) -> Result<HeldWrites> {
        let server = WebhookServer::start("hook.removal.svc").await?;
        let group = if plural == "pods" { "" } else { "apps" };
        let webhook = |path: &str, manager: &str| {
            let expression =
                format!("request.name == '{name}' && request.options.fieldManager == '{manager}'");
            json!({
                "name": format!("{path}.{plural}.example.com"), "clientConfig": server.client_config(path),
                "rules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": [plural]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
                "matchConditions": [{"name": "writer", "expression": expression}],
                "sideEffects": "None", "timeoutSeconds": 30, "admissionReviewVersions": ["v1"],
            })
        };
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": format!("holds-{plural}")},
            "webhooks": [webhook("held", "drydock-removal"), webhook("deny", "probe")],
        });
        site.kubectl.apply(&configuration).await?;
        let probe = ["annotate", plural, name, "probe=1", "--field-manager=probe", "--dry-run=server"];
        let late = || format!("the webhook of {plural} is not asked");
        retry(LIMIT, late, async || Ok(site.kubectl.run(&probe, "").await?.err.contains("not today")))
            .await?;
        Ok(HeldWrites { server })
    }

    async fn until_asked(&self) -> Result<()> {
        retry(
            LIMIT,
            || "the removal does not write".to_owned(),
            async || Ok(!self.server.asked("held").is_empty()),
        )
        .await
    }
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
    async fn is_removed(&self) -> Result<()> {
        for _ in 0..2 {
            let host = &self.drydock.host;
            let (said, ()) = tokio::try_join!(removed(host, &[]), self.end_with_their_deployments())?;
            ensure!(!said.contains("error: "), "{said}");
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
        let labels = json!({"app": name});
        let pod =
            json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod},
        });
        kubectl.apply(&deployment).await?;
        let uid = &kubectl.object("deployment", name).await?["metadata"]["uid"];
        let record =
            json!({"delta": 1, "replicas": 3, "uid": uid, "pods": ["u"], "since": "2026-01-01T00:00:00Z"});
        kubectl.ok(&["annotate", "deployment", name, &format!("{RECORD}={record}")]).await?;
        kubectl.ok(&["rollout", "status", &format!("deployment/{name}")]).await?;
    }
    let registered = format!("{REGISTERED}=20000/interceptor");
    kubectl.ok(&["annotate", "pods", "--all", &registered]).await.map(drop)
}

/// Runs the removal, which must succeed, and returns what it printed.
async fn removed(host: &TestHost, arguments: &[&str]) -> Result<String> {
    let Output { status, stdout, stderr } = remove(host, arguments).await?;
    let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{said}");
    Ok(said)
}

/// Runs the removal as the admin.
pub async fn remove(host: &TestHost, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(program(MANAGER));
    command.arg("remove").args(arguments).env("KUBECONFIG", host.admin()).kill_on_drop(true);
    let ended = tokio::time::timeout(2 * LIMIT, command.output()).await;
    Ok(ended.context("the removal does not end")??)
}
