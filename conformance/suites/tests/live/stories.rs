//! User stories of KEP-4563 whose interceptor or requester the test plays: a single replica that migrates, an interceptor
//! that is at work for long, one that cleans storage up, one of a Job, one that ends its pod, the interceptors of a pod, a
//! node that is deleted in the middle, and a descheduler.

use anyhow::{Context, Result, ensure};
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::{eviction_request, eviction_requests, named_node_maintenance};
use drydock_testkit::wait::{until, until_some};
use jiff::{SignedDuration, Timestamp, Unit};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::Status;
use kube::{Error, ResourceExt};
use serde_json::{Value, json};

use crate::authorization::users::{User, rule};
use crate::shared::{ABSENT_INTERCEPTOR, LIMIT, Namespace, shared};

/// Least time between two heartbeats, and the deadline of each once there are two.
const MINUTE: SignedDuration = SignedDuration::from_secs(60);
const KEY: &str = "interceptor.evictionrequest.coordination.k8s.io/priority_";

/// Story 2: its budget allows no eviction, so that it goes only because its interceptor brings up another one first.
#[tokio::test(flavor = "multi_thread")]
async fn a_single_replica_leaves_once_its_interceptor_has_brought_up_another() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("single-replica").await?;
    let nodes = [shared.node("single-one").await?, shared.node("single-two").await?];
    let kubectl = &namespace.kubectl;
    kubectl.apply(&budget("single", json!({"minAvailable": 1}))).await?;
    kubectl.apply(&single_replica(&nodes)).await?;
    kubectl.ok(&["rollout", "status", "deployment/single"]).await?;
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    let old = pods.list(&ListParams::default()).await?.items.pop().context("no pod")?;
    let node = old.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("no node")?;
    let uid = old.uid().context("no uid")?;
    kubectl.apply(&named_node_maintenance("single", "Drain", &[&node])).await?;
    has_its_turn(&namespace, &uid).await?;
    let requests = eviction_requests(&namespace.client, &namespace.name);
    let begin = |now| json!({"startTime": now, "heartbeatTime": now, "message": "one more"});
    let began = report(&requests, &uid, begin).await?;
    kubectl.ok(&["scale", "deployment/single", "--replicas=2"]).await?;
    kubectl.ok(&["rollout", "status", "deployment/single"]).await?;
    let stays = pods.get(&old.name_any()).await?;
    ensure!(stays.metadata.deletion_timestamp.is_none(), "it did not wait for the other one");

    let end =
        |now| json!({"startTime": began, "heartbeatTime": began, "completionTime": now, "message": "done"});
    report(&requests, &uid, end).await?;
    until(pods.clone(), &old.name_any(), LIMIT, "gone", |pod: Option<&Pod>| pod.is_none()).await?;
    kubectl.ok(&["scale", "deployment/single", "--replicas=1"]).await?;
    let drained = ["wait", "nodemaintenance/single", "--for=condition=Drained"];
    kubectl.ok(&drained).await?;
    let left = pods.list(&ListParams::default()).await?.items;
    let moved = left.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let elsewhere = moved.filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).all(|at| at != node);
    ensure!(elsewhere && !left.is_empty(), "{left:?}");
    kubectl.ok(&["delete", "nodemaintenance/single"]).await.map(drop)
}

/// A turn has no end of its own: an interceptor that is at work for longer than the deadline keeps it as long as it reports,
/// and the pod is not evicted. The deadline is set when there are two heartbeats and that of the first one is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_keeps_the_turn_when_the_deadline_of_the_one_before_is_over() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    let namespace = Namespace::default_of(&drydock).await?;
    let node = create_nodes(&namespace.client, "long", 1).await?.remove(0);
    let uid = namespace.held_pod("long", &node).await?;
    namespace.kubectl.apply(&eviction_request("long", &uid, "test.example.com")).await?;
    has_its_turn(&namespace, &uid).await?;
    let requests = eviction_requests(&namespace.client, &namespace.name);
    let begin = |now| json!({"startTime": now, "heartbeatTime": now, "message": "working"});
    let began = report(&requests, &uid, begin).await?;
    let late = || "no second heartbeat is taken".to_owned();
    let last = until_some(LIMIT, late, async || {
        let go_on = |now| json!({"startTime": began, "heartbeatTime": now, "message": "working"});
        let last = report(&requests, &uid, go_on).await?;
        // Within the second of the first it changes nothing, and is taken for that.
        Ok(Some(last).filter(|last| *last > began))
    });
    let last = last.await?;
    ensure!(last.duration_since(began) >= MINUTE, "heartbeats at {began} and {last}");

    drydock.stop_manager().await?;
    drydock.stop_apiserver().await?;
    let deadline = [format!("--heartbeat-deadline={}s", MINUTE.as_secs())];
    drydock.start_apiserver_with(&deadline).await?;
    drydock.start_manager_with(&deadline).await?;
    // The controllers have looked at the request when it has the new label of its pod.
    namespace.kubectl.ok(&["label", "pod", "long", "seen=yes"]).await?;
    namespace.kubectl.ok(&["wait", "evreq", &uid, "--for=jsonpath={.metadata.labels.seen}=yes"]).await?;
    let status = requests.get(&uid).await?.data["status"].take();
    if status["activeInterceptors"] == json!([ABSENT_INTERCEPTOR]) {
        let pod = namespace.kubectl.object("pod", "long").await?;
        ensure!(pod["metadata"]["deletionTimestamp"].is_null(), "it was evicted in the interceptor's turn");
        let end = |now| json!({"startTime": began, "heartbeatTime": last, "completionTime": now, "message": "done"});
        report(&requests, &uid, end).await?;
    } else {
        // All of this took a busy machine longer than the deadline of the second heartbeat.
        let next: Timestamp = status["activationTime"].as_str().context("no next turn")?.parse()?;
        ensure!(next.duration_since(last) >= MINUTE, "passed over early: {status}");
    }
    namespace.kubectl.ok(&["wait", "evreq", &uid, "--for=condition=Evicted"]).await.map(drop)
}

/// Story 1: be able to identify all the registered interceptors.
#[tokio::test(flavor = "multi_thread")]
async fn all_interceptors_of_a_pod_are_listed_in_their_order() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("all-interceptors").await?;
    let node = shared.node("all-interceptors").await?;
    let annotations = json!({
        format!("{KEY}save.example.com"): "20/controller", format!("{KEY}{ABSENT_INTERCEPTOR}"): "30/interceptor",
        format!("{KEY}tidy.example.com"): "10/interceptor",
    });
    let uid = namespace.pod("three", &node, annotations).await?;
    namespace.kubectl.apply(&eviction_request("three", &uid, "descheduler.example.com")).await?;
    has_its_turn(&namespace, &uid).await?;
    let described = namespace.kubectl.ok(&["describe", "evreq", &uid]).await?;
    let order = [ABSENT_INTERCEPTOR, "save.example.com", "tidy.example.com", "imperative-eviction.k8s.io"];
    let status = &namespace.kubectl.object("evreq", &uid).await?["status"];
    for list in ["targetInterceptors", "interceptors"] {
        let names: Vec<&str> = status[list]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|entry| entry["name"].as_str())
            .collect();
        ensure!(names == order, "{list}: {names:?}");
    }
    for name in order {
        ensure!(described.contains(name), "{name} is not in {described}");
    }
    Ok(())
}

/// Nothing drains the node any more, and the host removes the pods of a node that is gone: nobody waits for their
/// interceptors.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_deleted_in_the_middle_ends_the_requests_for_its_pods_and_the_maintenance_ends()
-> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("deleted-node").await?;
    let node = shared.node("deleted-node").await?;
    let uid = namespace.held_pod("held", &node).await?;
    namespace.kubectl.apply(&named_node_maintenance("deleted-node", "Drain", &[&node])).await?;
    has_its_turn(&namespace, &uid).await?;
    namespace.kubectl.ok(&["delete", "node", &node]).await?;
    namespace.kubectl.ok(&["wait", "evreq", &uid, "--for=condition=Canceled"]).await?;
    let status = &namespace.kubectl.object("evreq", &uid).await?["status"];
    ensure!(status["activeInterceptors"].is_null(), "{status}");
    ensure!(status["interceptors"][0]["completionTime"].is_null(), "{status}");
    namespace.kubectl.ok(&["wait", "pod/held", "--for=delete"]).await?;
    let complete = r#"{"spec":{"stage":"Complete"}}"#;
    let finish = ["patch", "nodemaintenance", "deleted-node", "--type=merge", "--patch", complete];
    namespace.kubectl.ok(&finish).await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/deleted-node"]).await.map(drop)
}

/// "After a partial cleanup [...] the API-initiated eviction can be used to respect PodDisruptionBudgets": the volume is
/// given up in the interceptor's turn, and the pod goes when its budget lets it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_storage_was_cleaned_up_waits_for_its_budget() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("storage").await?;
    let (node, kubectl) = (shared.node("storage").await?, &namespace.kubectl);
    kubectl.apply(&claim()).await?;
    kubectl.apply(&with_claim(&node)).await?;
    kubectl.apply(&budget("store", json!({"minAvailable": 1}))).await?;
    kubectl.ok(&["wait", "pod/store", "--for=condition=Ready"]).await?;
    let pod = kubectl.object("pod", "store").await?;
    let uid = pod["metadata"]["uid"].as_str().context("no uid")?;
    kubectl.apply(&eviction_request("store", uid, "storage.example.com")).await?;
    has_its_turn(&namespace, uid).await?;
    let requests = eviction_requests(&namespace.client, &namespace.name);
    let begin = |now| json!({"startTime": now, "heartbeatTime": now, "message": "moving the data"});
    let began = report(&requests, uid, begin).await?;
    kubectl.ok(&["delete", "persistentvolumeclaim/data", "--wait=false"]).await?;
    let end =
        |now| json!({"startTime": began, "heartbeatTime": began, "completionTime": now, "message": "moved"});
    report(&requests, uid, end).await?;

    let blocked = "--for=jsonpath={.status.interceptors[1].blocked.reason}=PodDisruptionBudget";
    kubectl.ok(&["wait", "evreq", uid, blocked]).await?;
    let volume = kubectl.object("persistentvolumeclaim", "data").await?;
    ensure!(volume["metadata"]["deletionTimestamp"].is_string(), "{volume}");
    let kept = kubectl.object("pod", "store").await?;
    ensure!(kept["metadata"]["deletionTimestamp"].is_null(), "it was evicted against its budget");
    kubectl.apply(&budget("store", json!({"minAvailable": 0}))).await?;
    kubectl.ok(&["wait", "evreq", uid, "--for=condition=Evicted"]).await?;
    kubectl.ok(&["wait", "persistentvolumeclaim/data", "--for=delete"]).await.map(drop)
}

/// "If required, custom interceptors can be implemented to support custom eviction logic for specialized types of jobs."
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_of_a_job_stays_for_its_interceptors_turn_and_leaves_after_it() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("job").await?;
    let (node, kubectl) = (shared.node("job").await?, &namespace.kubectl);
    kubectl.apply(&job(&node)).await?;
    kubectl.ok(&["wait", "job/train", "--for=jsonpath={.status.ready}=1"]).await?;
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    let pod = pods.list(&ListParams::default()).await?.items.pop().context("no pod")?;
    let uid = pod.uid().context("no uid")?;
    kubectl.apply(&named_node_maintenance("job", "Drain", &[&node])).await?;
    has_its_turn(&namespace, &uid).await?;
    let requests = eviction_requests(&namespace.client, &namespace.name);
    let begin = |now| json!({"startTime": now, "heartbeatTime": now, "message": "writing a checkpoint"});
    let began = report(&requests, &uid, begin).await?;
    let kept = pods.get(&pod.name_any()).await?;
    ensure!(kept.metadata.deletion_timestamp.is_none(), "it was evicted in the interceptor's turn");

    let end = |now| json!({"startTime": began, "heartbeatTime": began, "completionTime": now, "message": "written"});
    report(&requests, &uid, end).await?;
    kubectl.ok(&["wait", "evreq", &uid, "--for=condition=Evicted"]).await?;
    let status = requests.get(&uid).await?.data["status"].take();
    let processed = json!([ABSENT_INTERCEPTOR, "imperative-eviction.k8s.io"]);
    ensure!(status["processedInterceptors"] == processed, "{status}");
    kubectl.ok(&["wait", "nodemaintenance/job", "--for=condition=Drained"]).await?;
    kubectl.ok(&["delete", "job/train", "nodemaintenance/job"]).await.map(drop)
}

/// Story 7: "by means other than pod deletion", so that the object stays "for tracking and debugging purposes".
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_its_interceptor_ends_is_evicted_and_its_object_stays() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("ended-pod").await?;
    let (node, kubectl) = (shared.node("ended-pod").await?, &namespace.kubectl);
    kubectl.apply(&never_restarted(&node)).await?;
    kubectl.ok(&["wait", "pod/ended", "--for=condition=Ready"]).await?;
    let pod = kubectl.object("pod", "ended").await?;
    let uid = pod["metadata"]["uid"].as_str().context("no uid")?;
    kubectl.apply(&named_node_maintenance("ended-pod", "Drain", &[&node])).await?;
    has_its_turn(&namespace, uid).await?;
    let requests = eviction_requests(&namespace.client, &namespace.name);
    let begin = |now| json!({"startTime": now, "heartbeatTime": now, "message": "ending it"});
    report(&requests, uid, begin).await?;
    let succeeded = r#"{"status":{"phase":"Succeeded"}}"#;
    kubectl.ok(&["patch", "pod", "ended", "--subresource=status", "-p", succeeded]).await?;

    kubectl.ok(&["wait", "evreq", uid, "--for=condition=Evicted"]).await?;
    kubectl.ok(&["wait", "nodemaintenance/ended-pod", "--for=condition=Drained"]).await?;
    let status = requests.get(uid).await?.data["status"].take();
    ensure!(status["conditions"][0]["reason"] == "PodTerminated", "{status}");
    ensure!(status["processedInterceptors"] == json!([ABSENT_INTERCEPTOR]), "{status}");
    let left = kubectl.object("pod", "ended").await?;
    ensure!(left["metadata"]["uid"] == uid && left["metadata"]["deletionTimestamp"].is_null(), "{left}");
    kubectl.ok(&["delete", "nodemaintenance/ended-pod"]).await.map(drop)
}

/// Story 4: a node is no longer the right one for the pods of a Deployment. The descheduler asks for all of them at once,
/// with the rights that it needs and no others; they go one after the other, as their budget wants it.
#[tokio::test(flavor = "multi_thread")]
async fn a_descheduler_has_pods_moved_to_the_right_node() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("descheduler").await?;
    let (wrong, right) = (shared.node("wrong").await?, shared.node("right").await?);
    let kubectl = &namespace.kubectl;
    kubectl.ok(&["label", "node", &wrong, "place=right"]).await?;
    kubectl.apply(&budget("placed", json!({"maxUnavailable": 1}))).await?;
    kubectl.apply(&placed()).await?;
    kubectl.ok(&["rollout", "status", "deployment/placed"]).await?;
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    let misplaced = pods.list(&ListParams::default()).await?.items;
    kubectl.ok(&["label", "node", &wrong, "place-"]).await?;
    kubectl.ok(&["label", "node", &right, "place=right"]).await?;

    let requests =
        rule("coordination.k8s.io", "evictionrequests", &[], &["get", "create", "patch", "delete"]);
    let rights = [requests, rule("", "pods", &[], &["delete"])];
    let descheduler = User::with_rights(shared, "descheduler", &namespace.name, &rights).await?.kubectl;
    let uids: Vec<String> = misplaced.iter().filter_map(ResourceExt::uid).collect();
    ensure!(uids.len() == 3, "{misplaced:?}");
    for (pod, uid) in misplaced.iter().zip(&uids) {
        let request = eviction_request(&pod.name_any(), uid, "descheduler.example.com");
        let apply = ["apply", "--server-side", "--field-manager=descheduler.example.com", "--filename=-"];
        let applied = descheduler.run(&apply, &request.to_string()).await?;
        ensure!(applied.out.contains("serverside-applied"), "{}", applied.err);
    }
    for uid in &uids {
        kubectl.ok(&["wait", "evreq", uid, "--for=condition=Evicted"]).await?;
        descheduler.ok(&["delete", "evreq", uid]).await?;
    }
    kubectl.ok(&["rollout", "status", "deployment/placed"]).await?;
    let moved = pods.list(&ListParams::default()).await?.items;
    let moved = moved.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let nodes: Vec<_> = moved.filter_map(|pod| pod.spec.as_ref()?.node_name.as_deref()).collect();
    ensure!(nodes == [&*right; 3], "{nodes:?}");
    Ok(())
}

fn single_replica(nodes: &[String]) -> Value {
    let labels = json!({"app": "single"});
    let near = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": nodes});
    let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [near]}]});
    let annotations = json!({format!("{KEY}{ABSENT_INTERCEPTOR}"): "10/controller"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "single"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {
                    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
                    "containers": [{"name": "c", "image": "none"}],
                },
            },
        },
    })
}

/// Three pods that have their place on nodes with a label.
fn placed() -> Value {
    let labels = json!({"app": "placed"});
    let spec = json!({
        "nodeSelector": {"place": "right"}, "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "none"}],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "placed"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
}

/// A Job of one pod on a node, which its interceptor holds back.
fn job(node: &str) -> Value {
    let annotations = json!({format!("{KEY}{ABSENT_INTERCEPTOR}"): "10/controller"});
    let spec = json!({
        "nodeSelector": {"kubernetes.io/hostname": node}, "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "none"}],
    });
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
        "spec": {"template": {"metadata": {"annotations": annotations}, "spec": spec}},
    })
}

/// A pod that ends for good when its process does, which its interceptor holds back.
fn never_restarted(node: &str) -> Value {
    let annotations = json!({format!("{KEY}{ABSENT_INTERCEPTOR}"): "10/controller"});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ended", "annotations": annotations},
        "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [{"name": "c", "image": "none"}]},
    })
}

fn claim() -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

/// A pod with the volume, which its interceptor holds back.
fn with_claim(node: &str) -> Value {
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
    let annotations = json!({format!("{KEY}{ABSENT_INTERCEPTOR}"): "10/controller"});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "store", "labels": {"app": "store"}, "annotations": annotations},
        "spec": {
            "nodeName": node, "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "none"}], "volumes": [volume],
        },
    })
}

/// A budget of this spec for the pods of an app.
fn budget(app: &str, mut spec: Value) -> Value {
    spec["selector"] = json!({"matchLabels": {"app": app}});
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}, "spec": spec})
}

/// Waits for the turn of the interceptor that the test plays.
async fn has_its_turn(namespace: &Namespace, uid: &str) -> Result<()> {
    let requests = eviction_requests(&namespace.client, &namespace.name);
    let is_active = |object: Option<&DynamicObject>| {
        object.is_some_and(|object| object.data["status"]["activeInterceptors"][0] == ABSENT_INTERCEPTOR)
    };
    until(requests, uid, LIMIT, "the interceptor's turn", is_active).await.map(drop)
}

/// Reports as the interceptor at a time, and returns that time. It waits until the API server takes the time: the present one,
/// which is over when a busy machine takes 10 s, and that of a heartbeat a minute after the last one.
async fn report(
    requests: &Api<DynamicObject>,
    uid: &str,
    entry: impl Fn(Timestamp) -> Value,
) -> Result<Timestamp> {
    let params = PatchParams::apply(ABSENT_INTERCEPTOR).force();
    let late = || "the API server takes no report".to_owned();
    until_some(LIMIT, late, async || {
        let now = now()?;
        let mut entry = entry(now);
        entry["name"] = ABSENT_INTERCEPTOR.into();
        let status = json!({
            "apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest", "metadata": {"name": uid},
            "status": {"interceptors": [entry]},
        });
        match requests.patch_status(uid, &params, &Patch::Apply(&status)).await {
            Ok(_) => Ok(Some(now)),
            Err(Error::Api(status)) if is_about_time(&status) => Ok(None),
            Err(error) => Err(error.into()),
        }
    })
    .await
}

fn is_about_time(refusal: &Status) -> bool {
    let words = ["must be the present time", "must be at least 60 seconds after the last one"];
    refusal.code == 422 && words.iter().any(|words| refusal.message.contains(words))
}

fn now() -> Result<Timestamp> {
    Ok(Timestamp::now()
        .round(jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor))?)
}
