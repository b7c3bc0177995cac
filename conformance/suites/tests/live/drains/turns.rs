//! Turns of interceptors that nobody serves, and the command that ends all turns of a maintenance's pods.

use anyhow::{Result, ensure};
use drydock_api::eviction_request::interceptor_annotations;
use drydock_testkit::drydock::{MANAGER, program};
use drydock_testkit::host::repository;
use drydock_testkit::kinds::named_node_maintenance;
use drydock_testkit::wait::retry;
use serde_json::{Value, json};
use tokio::process::Command;

use super::unserved::maintainer;
use super::{LIMIT, drained};
use crate::drains::blockers::blocked;
use crate::shared::{ABSENT_INTERCEPTOR, Namespace, Shared, shared};

/// An interceptor that does not run, with a turn after [`ABSENT_INTERCEPTOR`].
const LATER: &str = "later.example.com";

fn turns(names: &[(&str, i32)]) -> Value {
    let turn = |(name, priority): &(&str, i32)| {
        (
            format!("{}priority_{name}", interceptor_annotations::PREFIX),
            json!(format!("{priority}/controller")),
        )
    };
    Value::Object(names.iter().map(turn).collect())
}

/// Each of these names kept its pod for 20 minutes, though no program of the cluster has it.
#[tokio::test(flavor = "multi_thread")]
async fn built_in_interceptors_that_nobody_serves_keep_no_pod_and_its_owner_is_told() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("built-in").await?;
    let node = shared.node("built-in").await?;
    let names = [("deployment.apps.k8s.io", 9), ("job.batch.k8s.io", 8), ("kubelet.k8s.io", 7)];
    namespace.pod("p", &node, turns(&names)).await?;
    namespace.kubectl.apply(&named_node_maintenance("built-in", "Drain", &[&node])).await?;
    drained(&namespace.client, "built-in", "True").await?;
    let about = "--field-selector=reason=InvalidInterceptor,involvedObject.kind=Pod,involvedObject.name=p";
    for (name, _) in names {
        let words = format!("priority_{name} is ignored: no program of this installation serves it");
        let late = || format!("no event says: {words}");
        retry(LIMIT, late, async || {
            Ok(namespace.kubectl.ok(&["get", "events", about, "-o", "wide"]).await?.contains(&words))
        })
        .await?;
    }
    namespace.kubectl.ok(&["delete", "nodemaintenance/built-in"]).await.map(drop)
}

/// A person ended turns one by one, with a command for each.
#[tokio::test(flavor = "multi_thread")]
async fn one_command_ends_all_turns_of_a_maintenance_for_those_who_may_and_no_others() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("end-turns").await?;
    let (node, other) = (shared.node("end-turns").await?, shared.node("end-turns-other").await?);
    let pods = ["one", "two", "three"];
    for pod in pods {
        namespace.pod(pod, &node, turns(&[(ABSENT_INTERCEPTOR, 2), (LATER, 1)])).await?;
    }
    let kept = namespace.held_pod("kept", &other).await?;
    namespace.kubectl.apply(&named_node_maintenance("end-turns", "Drain", &[&node])).await?;
    namespace.kubectl.apply(&named_node_maintenance("end-turns-other", "Drain", &[&other])).await?;
    for maintenance in ["end-turns", "end-turns-other"] {
        blocked(&namespace.client, maintenance, "Interceptor", "which has never reported").await?;
    }
    let users = repository().join("deploy/base/rbac-users.yaml");
    shared.drydock.host.kubectl(&["apply", "--server-side", "-f", &users.to_string_lossy()])?;
    maintainer(shared, &namespace, "turns-maintainer", false).await?;
    let (code, said) = end_turns(shared, "turns-maintainer", &["end-turns"]).await?;
    ensure!(code == 1 && said.contains("not all turns were ended") && said.contains("forbidden"), "{said}");
    maintainer(shared, &namespace, "turns-skipper", true).await?;
    let (code, said) = end_turns(shared, "turns-skipper", &["end-turns", "--dry-run"]).await?;
    for pod in pods {
        let would = format!(
            "would end the turn of {ABSENT_INTERCEPTOR} for pod end-turns/{pod} on node {node}, then that of {LATER}"
        );
        ensure!(code == 0 && said.contains(&would), "{said}");
    }
    let (code, said) = end_turns(shared, "turns-skipper", &["end-turns"]).await?;
    ensure!(code == 0 && said.contains("turns ended: 6"), "{said}");
    drained(&namespace.client, "end-turns", "True").await?;
    still_waits(&namespace, &kept).await?;
    let (code, said) = end_turns(shared, "turns-skipper", &["nowhere"]).await?;
    ensure!(code == 1 && said.contains("there is no NodeMaintenance nowhere"), "{said}");
    namespace.kubectl.ok(&["delete", "nodemaintenance", "end-turns", "end-turns-other"]).await.map(drop)
}

/// The turn of a pod of another maintenance goes on.
async fn still_waits(namespace: &Namespace, uid: &str) -> Result<()> {
    let request = namespace.kubectl.object("evreq", uid).await?;
    let status = &request["status"];
    ensure!(status["activeInterceptors"] == json!([ABSENT_INTERCEPTOR]), "{status}");
    ensure!(status["interceptors"][0].get("completionTime").is_none(), "{status}");
    Ok(())
}

/// Runs the command as a user; its exit code, and all that it printed.
async fn end_turns(shared: &Shared, user: &str, arguments: &[&str]) -> Result<(i32, String)> {
    let kubeconfig = shared.drydock.host.kubeconfig(user, &[])?;
    let mut command = Command::new(program(MANAGER));
    command.arg("end-turns").args(arguments).arg("--kubeconfig").arg(kubeconfig).kill_on_drop(true);
    let output = tokio::time::timeout(LIMIT, command.output()).await??;
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    Ok((output.status.code().unwrap_or(-1), out + &err))
}
