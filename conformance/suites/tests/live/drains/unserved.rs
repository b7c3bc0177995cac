//! An interceptor that does not run: blockers and events name it, and a command lets the drain go on.

use anyhow::{Context, Result, ensure};
use drydock_api::eviction_request::interceptor_annotations;
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::{TestHost, repository};
use drydock_testkit::kinds::named_node_maintenance;
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::{allowed, retry, schema_served, until};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::Api;
use serde_json::{Value, json};

use super::{LIMIT, drained};
use crate::drains::blockers::blocked;
use crate::shared::{ABSENT_INTERCEPTOR, Namespace, Shared, shared};

/// Lets an admin's delegate end the turn of an interceptor.
const SKIP_ROLE: &str = "drydock:skip-interceptors";

/// For five minutes no blocker named it; then one did, without saying what to do.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_of_its_blocker_lets_the_drain_go_on() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("unserved").await?;
    let node = shared.node("unserved").await?;
    namespace.held_pod("held", &node).await?;
    namespace.kubectl.apply(&named_node_maintenance("unserved", "Drain", &[&node])).await?;
    let message = blocked(&namespace.client, "unserved", "Interceptor", "which has never reported").await?;
    let (before, command) = message.split_once("To go on now: ").context("no command")?;
    ensure!(before.contains("it is passed over at 20"), "{message}");
    ensure!(before.contains(&format!("the ClusterRole {SKIP_ROLE} may end its turn")), "{message}");
    let host = &shared.drydock.host;
    let users = repository().join("deploy/base/rbac-users.yaml");
    host.kubectl(&["apply", "--server-side", "-f", &users.to_string_lossy()])?;
    let alone = maintainer(shared, &namespace, "unserved-maintainer", false).await?;
    let said = alone.script(&host.dir, command).await?;
    ensure!(said.code != 0 && said.err.contains("orbidden"), "drydock:maintainer may do it alone: {said:?}");
    let skipper = maintainer(shared, &namespace, "unserved-skipper", true).await?;
    let said = skipper.script(&host.dir, command).await?;
    ensure!(said.code == 0, "{command}: {said:?}");
    drained(&namespace.client, "unserved", "True").await?;
    let about = "--field-selector=reason=InterceptorSkipped,involvedObject.kind=Pod,involvedObject.name=held";
    let words = format!(
        "the turn of {ABSENT_INTERCEPTOR} was ended by others, with the field manager \"kubectl-patch\""
    );
    let late = || "no event names who ended the turn".to_owned();
    retry(LIMIT, late, async || {
        Ok(namespace.kubectl.ok(&["get", "events", about, "-o", "wide"]).await?.contains(&words))
    })
    .await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/unserved"]).await.map(drop)
}

/// The kubectl of a user who has drydock:maintainer, and in the namespace the right to end turns too if
/// `skips`. The host knows of both when this returns.
pub(super) async fn maintainer(
    shared: &Shared,
    namespace: &Namespace,
    user: &str,
    skips: bool,
) -> Result<Kubectl> {
    let host = &shared.drydock.host;
    let of_user = format!("--user={user}");
    host.kubectl(&["create", "clusterrolebinding", user, "--clusterrole=drydock:maintainer", &of_user])?;
    // What end-turns reads before it ends anything.
    let mut questions = vec![("get", ""), ("list", "")];
    if skips {
        let role = format!("--clusterrole={SKIP_ROLE}");
        host.kubectl(&["create", "rolebinding", user, &role, &of_user, "--namespace", &namespace.name])?;
        questions.extend([("patch", "status"), ("patch", "interceptor")]);
    }
    for (verb, subresource) in questions {
        let question = json!({"group": "coordination.k8s.io", "resource": "evictionrequests", "subresource": subresource,
            "verb": verb, "namespace": namespace.name});
        let review = json!({"spec": {"user": user, "resourceAttributes": question}});
        allowed(&namespace.client, &serde_json::from_value(review)?, LIMIT).await?;
    }
    Ok(namespace.kubectl.clone().with_kubeconfig(&host.kubeconfig(user, &[])?))
}

/// The deletion of the request started its interceptor's time again; how often that had happened was
/// forgotten at a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_deleted_says_how_often_it_was_asked_for_after_a_restart_too() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    let client = drydock.host.client().await?;
    schema_served(&client, drydock_api::API_VERSION, LIMIT).await?;
    let node = create_nodes(&client, "again", 1).await?.remove(0);
    let kubectl = Kubectl::new(&drydock.host);
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    until(accounts, "default", LIMIT, "there", |a: Option<&ServiceAccount>| a.is_some()).await?;
    let namespace = Namespace { name: "default".into(), client, kubectl };
    // Each has one turn, however often the request is made anew. Only the first one may have it again: if the request goes
    // within its first minute.
    let names = ["first", "second", "third"].map(|name| format!("{name}.example.com"));
    let key = |name: &String| format!("{}priority_{name}", interceptor_annotations::PREFIX);
    let annotations = json!({key(&names[0]): "3/controller", key(&names[1]): "2/controller", key(&names[2]): "1/controller"});
    let uid = namespace.pod("held", &node, annotations).await?;
    namespace.kubectl.apply(&named_node_maintenance("again", "Drain", &[&node])).await?;
    let never = |name: &String| format!("Waiting for interceptor {name}, which has never reported");
    blocked(&namespace.client, "again", "Interceptor", &never(&names[0])).await?;
    let made = "jsonpath={.metadata.creationTimestamp}";
    let first = namespace.kubectl.ok(&["get", "evictionrequest", &uid, "-o", made]).await?;
    namespace.kubectl.ok(&["delete", "evictionrequest", &uid]).await?;
    let words = format!("asked again once, first at {}", first.trim());
    let message = blocked(&namespace.client, "again", "Interceptor", &words).await?;
    let again = usize::from(!message.contains(&never(&names[0])));
    ensure!(message.contains(&never(&names[again])), "{message}");
    let holder = ["get", "lease", "drydock-controller-manager", "-n", "drydock-system"];
    let holder = [holder.as_slice(), &["-o", "jsonpath={.spec.holderIdentity}"]].concat();
    let before = namespace.kubectl.ok(&holder).await?;
    drydock.kill_manager()?;
    drydock.start_manager().await?;
    let late = || format!("nobody has taken the lease over: {}", drydock.log_tail());
    drydock.manager_is_ready().await?;
    let is_taken_over = async || {
        let now = namespace.kubectl.ok(&holder).await?;
        Ok(!now.trim().is_empty() && now != before)
    };
    retry(LIMIT, late, is_taken_over).await?;
    // The next one is asked for by a manager that was not there when the first was lost.
    namespace.kubectl.ok(&["delete", "evictionrequest", &uid]).await?;
    let words = format!("asked again 2 times, first at {}", first.trim());
    let message = blocked(&namespace.client, "again", "Interceptor", &words).await?;
    ensure!(message.contains(&never(&names[again + 1])), "{message}");
    let shown = namespace.kubectl.object("nodemaintenance", "again").await?["status"]["podTurns"].take();
    ensure!(
        shown[0]["uid"] == uid && shown[0]["turns"]["interceptors"] == json!(&names[..=again]),
        "{shown}"
    );
    // The next one has 20 minutes; the admin gives all of them together a second.
    drydock.kill_manager()?;
    drydock.start_manager_with(&["--max-interception=1s".to_owned()]).await?;
    drained(&namespace.client, "again", "True").await
}

/// The interceptor was passed over without an event, and the owner got no event at all.
#[tokio::test(flavor = "multi_thread")]
async fn its_silence_and_passing_it_over_are_events_on_pod_and_request_and_the_next_blocker_says_it()
-> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    let client = drydock.host.client().await?;
    schema_served(&client, drydock_api::API_VERSION, LIMIT).await?;
    let node = create_nodes(&client, "late", 1).await?.remove(0);
    let kubectl = Kubectl::new(&drydock.host);
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    until(accounts, "default", LIMIT, "there", |a: Option<&ServiceAccount>| a.is_some()).await?;
    let namespace = Namespace { name: "default".into(), client, kubectl };
    let uid = namespace.held_pod("held", &node).await?;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "never"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "held"}}},
    });
    namespace.kubectl.apply(&budget).await?;
    namespace.kubectl.apply(&named_node_maintenance("late", "Drain", &[&node])).await?;
    let told = (
        "EvictionBlocked",
        format!("Waiting for interceptor {ABSENT_INTERCEPTOR}, which has never reported"),
    );
    owner_is_told(&namespace, &node, &uid, &told).await?;
    // It is passed over only now, however long the event took.
    drydock.stop_manager().await?;
    drydock.stop_apiserver().await?;
    let deadline = ["--heartbeat-deadline=1s".to_owned()];
    drydock.start_apiserver_with(&deadline).await?;
    drydock.start_manager_with(&deadline).await?;
    let over = format!("{ABSENT_INTERCEPTOR} was passed over before");
    blocked(&namespace.client, "late", "PodDisruptionBudget", &over).await?;
    let told = ("InterceptorTimedOut", format!("{ABSENT_INTERCEPTOR} has never reported"));
    owner_is_told(&namespace, &node, &uid, &told).await
}

/// Waits for an event of this reason and with these words on the pod `held` and on its request, and looks at what else is in
/// it.
async fn owner_is_told(
    namespace: &Namespace,
    node: &str,
    uid: &str,
    (reason, words): &(&str, String),
) -> Result<()> {
    let subject = format!("Eviction of pod held for NodeMaintenance late (a test) on node {node}: ");
    for (kind, name) in [("Pod", "held"), ("EvictionRequest", uid)] {
        let about = format!("involvedObject.kind={kind},involvedObject.name={name}");
        let list = ["get", "events", "--field-selector", &about, "-o", "json"];
        let late = || format!("no event {reason} of {kind} {name} says: {words}");
        retry(LIMIT, late, async || {
            let events: Value = serde_json::from_str(&namespace.kubectl.ok(&list).await?)?;
            let events = events["items"].as_array().context("no items")?;
            let said = |event: &&Value| {
                let message = event["message"].as_str().unwrap_or_default();
                event["reason"] == *reason && message.contains(words)
            };
            let Some(event) = events.iter().find(said) else { return Ok(false) };
            ensure!(event["message"].as_str().is_some_and(|said| said.starts_with(&subject)), "{event}");
            ensure!(kind != "Pod" || event["related"]["name"] == uid, "{event}");
            Ok(true)
        })
        .await?;
    }
    Ok(())
}
