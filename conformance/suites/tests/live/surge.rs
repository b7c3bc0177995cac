//! drydock-surge-interceptor with the rights of its service account: a Deployment of one replica whose budget keeps it
//! is drained without a moment below its budget, wherever the interceptor is killed.

use anyhow::{Context, Result, ensure};
use drydock_api::eviction_request::interceptor_annotations;
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::drydock::program;
use drydock_testkit::host::repository;
use drydock_testkit::kinds::{eviction_requests, named_node_maintenance};
use drydock_testkit::program::{Program, flag};
use drydock_testkit::wait::until;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use crate::shared::{ABSENT_INTERCEPTOR, LIMIT, Namespace, Shared, shared};

const NAME: &str = "surge.coordination.k8s.io";
const ACCOUNT: &str = "drydock-surge-interceptor";
const RECORD: &str = "surge.coordination.k8s.io/record";
const REGISTERED: &str = "interceptor.evictionrequest.coordination.k8s.io/priority_surge.coordination.k8s.io";
const APP: &str = "only";

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_at_its_budget_has_a_second_replica_before_its_pod_goes() -> Result<()> {
    let site = SurgeSite::new("surge").await?;
    let interceptor = site.start().await?;
    let (pod, node) = site.registered_pod().await?;
    site.namespace.kubectl.apply(&named_node_maintenance("surge", "Drain", &[&node])).await?;
    site.until("surged", |d| replicas(d) == Some(2) && record(d).is_some_and(|r| r.contains(&pod))).await?;
    site.is_over(&pod).await?;
    let entry = site.entry(&pod).await?;
    ensure!(entry["message"] == "one more replica of Deployment only is ready", "{entry}");
    ensure!(entry["startTime"].is_string() && entry["completionTime"].is_string(), "{entry}");
    for reason in ["SurgeStarted", "SurgeEnded"] {
        site.has_event(reason).await?;
    }
    ensure!(!interceptor.has_panicked());
    site.end("surge").await
}

/// The Deployment's replicas are the autoscaler's. It has no metrics here, and follows its minReplicas all the same.
#[tokio::test(flavor = "multi_thread")]
async fn with_an_autoscaler_its_min_replicas_are_raised_and_taken_back() -> Result<()> {
    let site = SurgeSite::new("surge-scaled").await?;
    site.namespace.kubectl.apply(&autoscaler(APP)).await?;
    let _interceptor = site.start().await?;
    let (pod, node) = site.registered_pod().await?;
    site.namespace.kubectl.apply(&named_node_maintenance("surge-scaled", "Drain", &[&node])).await?;
    let kubectl = &site.namespace.kubectl;
    kubectl.ok(&["wait", "hpa/only", "--for=jsonpath={.spec.minReplicas}=2"]).await?;
    ensure!(record(&site.deployment().await?).is_none(), "it is on the autoscaler");
    kubectl.ok(&["wait", "evreq", &pod, "--for=condition=Evicted"]).await?;
    kubectl.ok(&["wait", "hpa/only", "--for=jsonpath={.spec.minReplicas}=1"]).await?;
    let autoscaler = kubectl.object("hpa", APP).await?;
    ensure!(autoscaler["metadata"]["annotations"].get(RECORD).is_none(), "{autoscaler}");
    site.end("surge-scaled").await
}

/// Nobody knows whose number would bring another replica.
#[tokio::test(flavor = "multi_thread")]
async fn beside_two_autoscalers_the_turn_is_declined_and_nothing_is_raised() -> Result<()> {
    let site = SurgeSite::new("surge-scaled-twice").await?;
    let (kubectl, autoscalers) = (&site.namespace.kubectl, [APP, "second"]);
    for name in autoscalers {
        kubectl.apply(&autoscaler(name)).await?;
    }
    let _interceptor = site.start().await?;
    let (pod, node) = site.registered_pod().await?;
    kubectl.apply(&named_node_maintenance("surge-scaled-twice", "Drain", &[&node])).await?;
    let requests = eviction_requests(&site.namespace.client, &site.namespace.name);
    let is_declined = |request: Option<&DynamicObject>| {
        request.is_some_and(|request| {
            request.data["status"]["activeInterceptors"][0] == "imperative-eviction.k8s.io"
        })
    };
    until(requests, &pod, LIMIT, "with the next interceptor", is_declined).await?;
    let entry = site.entry(&pod).await?;
    ensure!(entry["message"] == "more than one HorizontalPodAutoscaler scales Deployment only", "{entry}");
    for name in autoscalers {
        let kept = kubectl.object("hpa", name).await?;
        let is_kept =
            kept["spec"]["minReplicas"] == 1 && kept["metadata"]["annotations"].get(RECORD).is_none();
        ensure!(is_kept, "{kept}");
    }
    ensure!(record(&site.deployment().await?).is_none(), "there is a surge");
    site.end("surge-scaled-twice").await
}

/// The second replica finds no node, so that the record stands when the interceptor is killed. Another one goes on.
#[tokio::test(flavor = "multi_thread")]
async fn an_interceptor_that_is_killed_after_its_update_goes_on_with_it() -> Result<()> {
    let site = SurgeSite::new("surge-killed").await?;
    let interceptor = site.start().await?;
    let (pod, node) = site.registered_pod().await?;
    let other = site.other_than(&node)?;
    site.namespace.kubectl.ok(&["cordon", other]).await?;
    site.namespace.kubectl.apply(&named_node_maintenance("surge-killed", "Drain", &[&node])).await?;
    site.until("surged", |d| replicas(d) == Some(2) && record(d).is_some()).await?;
    interceptor.kill().await?;
    site.namespace.kubectl.ok(&["uncordon", other]).await?;
    let _interceptor = site.start().await?;
    site.is_over(&pod).await?;
    site.end("surge-killed").await
}

/// The owner takes the opt-in away in the middle: the replica goes, and the budget holds the pod as it did without.
#[tokio::test(flavor = "multi_thread")]
async fn a_surge_is_taken_back_when_the_opt_in_goes() -> Result<()> {
    let site = SurgeSite::new("surge-opted-out").await?;
    let _interceptor = site.start().await?;
    let (pod, node) = site.registered_pod().await?;
    site.namespace.kubectl.ok(&["cordon", site.other_than(&node)?]).await?;
    site.namespace.kubectl.apply(&named_node_maintenance("surge-opted-out", "Drain", &[&node])).await?;
    site.until("surged", |d| replicas(d) == Some(2) && record(d).is_some()).await?;
    let kubectl = &site.namespace.kubectl;
    kubectl.ok(&["annotate", "deployment", APP, "surge.coordination.k8s.io/enabled-"]).await?;
    site.until("as before", |d| replicas(d) == Some(1) && record(d).is_none()).await?;
    let next = "--for=jsonpath={.status.activeInterceptors[0]}=imperative-eviction.k8s.io";
    kubectl.ok(&["wait", "evreq", &pod, next]).await?;
    let entry = site.entry(&pod).await?;
    let why = "Deployment only has no annotation surge.coordination.k8s.io/enabled: true";
    ensure!(entry["message"] == why, "{entry}");
    site.end("surge-opted-out").await
}

/// The interceptor takes its replica back with the request, and had no turn to make it again: the budget kept the pod for the
/// rest of the maintenance.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_deleted_after_the_surge_has_another_surge_and_the_drain_ends() -> Result<()> {
    let site = SurgeSite::new("surge-deleted").await?;
    let _interceptor = site.start().await?;
    let (pod, node) = site.registered_pod().await?;
    let kubectl = &site.namespace.kubectl;
    // Nobody serves the turn after that of the surge.
    let key = format!("{}priority_{ABSENT_INTERCEPTOR}", interceptor_annotations::PREFIX);
    kubectl.ok(&["annotate", "pods", "--selector=app=only", &format!("{key}=0/controller")]).await?;
    kubectl.apply(&named_node_maintenance("surge-deleted", "Drain", &[&node])).await?;
    let requests = eviction_requests(&site.namespace.client, &site.namespace.name);
    let is_surged = |request: Option<&DynamicObject>| {
        request.is_some_and(|request| request.data["status"]["activeInterceptors"][0] == ABSENT_INTERCEPTOR)
    };
    let surged = until(requests.clone(), &pod, LIMIT, "with the turn after the surge", is_surged).await?;
    let first = surged.and_then(|request| request.uid());
    ensure!(replicas(&site.deployment().await?) == Some(2));
    kubectl.ok(&["annotate", "pods", "--selector=app=only", &format!("{key}-")]).await?;
    kubectl.ok(&["delete", "evreq", &pod]).await?;
    let is_another = |request: Option<&DynamicObject>| request.is_some_and(|request| request.uid() != first);
    until(requests, &pod, LIMIT, "made anew", is_another).await?;
    site.is_over(&pod).await?;
    let entry = site.entry(&pod).await?;
    ensure!(entry["completionTime"].is_string(), "{entry}");
    site.end("surge-deleted").await
}

/// While no interceptor ran, the drain was given up: nothing but the record tells of the replica.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_whose_request_is_gone_is_taken_back_from_the_record_alone() -> Result<()> {
    let site = SurgeSite::new("surge-given-up").await?;
    let interceptor = site.start().await?;
    let (pod, node) = site.registered_pod().await?;
    let other = site.other_than(&node)?;
    site.namespace.kubectl.ok(&["cordon", other]).await?;
    site.namespace.kubectl.apply(&named_node_maintenance("surge-given-up", "Drain", &[&node])).await?;
    site.until("surged", |d| replicas(d) == Some(2) && record(d).is_some()).await?;
    interceptor.kill().await?;
    site.end("surge-given-up").await?;
    let requests = eviction_requests(&site.namespace.client, &site.namespace.name);
    let is_over = |request: Option<&DynamicObject>| {
        let conditions = request.and_then(|request| request.data["status"]["conditions"].as_array());
        let is_canceled =
            |condition: &Value| condition["type"] == "Canceled" && condition["status"] == "True";
        request.is_none() || conditions.is_some_and(|all| all.iter().any(is_canceled))
    };
    until(requests, &pod, LIMIT, "over", is_over).await?;
    ensure!(replicas(&site.deployment().await?) == Some(2));
    let _interceptor = site.start().await?;
    site.until("as before", |d| replicas(d) == Some(1) && record(d).is_none()).await?;
    let pods: Api<Pod> = Api::namespaced(site.namespace.client.clone(), &site.namespace.name);
    let left = pods.list(&ListParams::default()).await?;
    ensure!(left.iter().any(|left| left.uid().as_deref() == Some(&pod)), "the pod itself has stayed");
    Ok(())
}

/// Whoever may edit Deployments may forge records. None of them scales a Deployment of another namespace, ends the program,
/// or keeps it from a surge elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn records_that_a_tenant_forges_change_nothing_but_its_own_deployments() -> Result<()> {
    let site = SurgeSite::new("surge-forged").await?;
    let interceptor = site.start().await?;
    let (pod, node) = site.registered_pod().await?;
    let forger = site.shared.namespace("surge-forger").await?;
    let stolen = |uid: &Value| json!({"delta": 1, "replicas": 2, "uid": uid, "pods": [pod], "since": "2999-01-01T00:00:00Z"});
    let many: Vec<String> =
        (0..5_000).map(|number| format!("00000000-0000-0000-0000-{number:012}")).collect();
    let huge =
        json!({"delta": i32::MAX, "replicas": i32::MAX, "pods": ["a"], "since": "2026-01-01T00:00:00Z"});
    let copied = stolen(&site.namespace.kubectl.object("deployment", APP).await?["metadata"]["uid"]);
    let broken = [huge, json!({"pods": many}), copied].map(|record| record.to_string());
    let broken: Vec<String> = broken.into_iter().chain(["x".repeat(200_000), "-1".to_owned()]).collect();
    for (number, record) in broken.iter().enumerate() {
        let made = forged(&format!("forged-{number}"), record);
        let created = forger.kubectl.run(&["create", "-f", "-"], &made.to_string()).await?;
        ensure!(created.code == 0, "{}", created.err);
    }
    forger.kubectl.apply(&forged("own", "")).await?;
    let own = stolen(&forger.kubectl.object("deployment", "own").await?["metadata"]["uid"]);
    forger.kubectl.ok(&["annotate", "deployment", "own", "--overwrite", &format!("{RECORD}={own}")]).await?;

    site.namespace.kubectl.apply(&named_node_maintenance("surge-forged", "Drain", &[&node])).await?;
    site.until("surged", |d| replicas(d) == Some(2) && record(d).is_some_and(|r| r.contains(&pod))).await?;
    site.is_over(&pod).await?;
    let deployments: Api<Deployment> = Api::namespaced(forger.client.clone(), &forger.name);
    let is_taken_back =
        |d: Option<&Deployment>| d.is_some_and(|d| replicas(d) == Some(1) && record(d).is_none());
    until(deployments.clone(), "own", LIMIT, "taken back, for it has no such pod", is_taken_back).await?;
    for (number, text) in broken.iter().enumerate() {
        let kept = deployments.get(&format!("forged-{number}")).await?;
        ensure!(replicas(&kept) == Some(2) && record(&kept) == Some(text), "forged-{number} was changed");
    }
    ensure!(!interceptor.has_panicked());
    site.end("surge-forged").await
}

/// Two nodes with one pod between them, and the interceptor's account. One test at a time has it: only one process may run
/// an interceptor.
struct SurgeSite {
    shared: &'static Shared,
    namespace: Namespace,
    nodes: Vec<String>,
    _alone: MutexGuard<'static, ()>,
}

impl SurgeSite {
    async fn new(name: &str) -> Result<SurgeSite> {
        static ALONE: Mutex<()> = Mutex::const_new(());
        let shared = shared().await?;
        let alone = ALONE.lock().await;
        let role = repository().join("deploy/components/surge/rbac.yaml");
        shared.drydock.host.kubectl(&["apply", "--server-side", "-f", &role.to_string_lossy()])?;
        let namespace = shared.namespace(name).await?;
        let nodes = create_nodes(&namespace.client, name, 2).await?;
        for object in workload(&nodes) {
            namespace.kubectl.apply(&object).await?;
        }
        let status = ["rollout", "status", "deployment/only"];
        namespace.kubectl.ok(&status).await?;
        Ok(SurgeSite { shared, namespace, nodes, _alone: alone })
    }

    /// Starts the interceptor. It does not wait until the lease of one that was killed is over.
    async fn start(&self) -> Result<Program> {
        let host = &self.shared.drydock.host;
        let kubectl = self.namespace.kubectl.clone().in_namespace("drydock-system");
        kubectl.ok(&["delete", "lease", ACCOUNT, "--ignore-not-found"]).await?;
        let user = format!("system:serviceaccount:drydock-system:{ACCOUNT}");
        let groups = ["system:serviceaccounts", "system:serviceaccounts:drydock-system"];
        let mut flags = vec![flag("kubeconfig", &host.kubeconfig(&user, &groups)?)];
        // No machine is so busy that the lease is lost.
        let lease = ["lease-duration=10m", "renew-deadline=9m", "retry-period=2s"];
        flags.extend(lease.map(|flag| format!("--leader-elect-{flag}")));
        flags.push("--secure-port=0".to_owned());
        Program::start(&program(ACCOUNT), &host.dir, &flags)
    }

    /// The pod, once the interceptor has registered on it: its UID and its node.
    async fn registered_pod(&self) -> Result<(String, String)> {
        let pods: Api<Pod> = Api::namespaced(self.namespace.client.clone(), &self.namespace.name);
        let made = pods.list(&ListParams::default()).await?;
        let name = made.iter().next().context("no pod")?.name_any();
        let is_registered =
            |pod: Option<&Pod>| pod.is_some_and(|pod| pod.annotations().contains_key(REGISTERED));
        let pod = until(pods, &name, LIMIT, "registered", is_registered).await?.context("no pod")?;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        Ok((pod.uid().context("a pod without UID")?, node.context("a pod without node")?))
    }

    fn other_than(&self, node: &str) -> Result<&str> {
        self.nodes.iter().map(String::as_str).find(|other| *other != node).context("no other node")
    }

    async fn deployment(&self) -> Result<Deployment> {
        let deployments: Api<Deployment> =
            Api::namespaced(self.namespace.client.clone(), &self.namespace.name);
        Ok(deployments.get(APP).await?)
    }

    async fn until(&self, what: &str, holds: impl Fn(&Deployment) -> bool) -> Result<()> {
        let deployments = Api::namespaced(self.namespace.client.clone(), &self.namespace.name);
        let holds = |found: Option<&Deployment>| found.is_some_and(&holds);
        until(deployments, APP, LIMIT, what, holds).await.map(drop)
    }

    /// Waits until the pod has gone through the surge, and nothing of it is left.
    async fn is_over(&self, pod: &str) -> Result<()> {
        let kubectl = &self.namespace.kubectl;
        kubectl.ok(&["wait", "evreq", pod, "--for=condition=Evicted"]).await?;
        let is_over = |d: &Deployment| replicas(d) == Some(1) && record(d).is_none() && ready(d) == Some(1);
        self.until("as before, with another pod", is_over).await
    }

    /// What the interceptor reported last of a pod.
    async fn entry(&self, pod: &str) -> Result<Value> {
        let request = self.namespace.kubectl.object("evreq", pod).await?;
        let entries = request["status"]["interceptors"].as_array();
        let entry = entries.and_then(|entries| entries.iter().find(|entry| entry["name"] == NAME));
        entry.cloned().with_context(|| format!("no entry: {request}"))
    }

    async fn has_event(&self, reason: &str) -> Result<()> {
        let about = format!("--field-selector=involvedObject.kind=Deployment,reason={reason}");
        let late = || format!("no event {reason}");
        drydock_testkit::wait::retry(LIMIT, late, async || {
            Ok(!self.namespace.kubectl.ok(&["get", "events", &about, "--output=name"]).await?.is_empty())
        })
        .await
    }

    async fn end(&self, maintenance: &str) -> Result<()> {
        let delete = ["delete", "nodemaintenance", maintenance];
        self.namespace.kubectl.ok(&delete).await.map(drop)
    }
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

fn ready(deployment: &Deployment) -> Option<i32> {
    deployment.status.as_ref()?.ready_replicas
}

fn record(deployment: &Deployment) -> Option<&String> {
    deployment.annotations().get(RECORD)
}

/// An autoscaler of the Deployment, which follows its minReplicas.
fn autoscaler(name: &str) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": APP});
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 2},
    })
}

/// A Deployment of two replicas that never run, with a record that somebody made up.
fn forged(name: &str, record: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "annotations": {"surge.coordination.k8s.io/enabled": "true", RECORD: record}},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"nodeSelector": {"none": "none"}, "containers": [{"name": "c", "image": "none"}]},
            },
        },
    })
}

/// A Deployment that is opted in, on these nodes, and a budget that keeps its pod.
fn workload(nodes: &[String]) -> [Value; 2] {
    let labels = json!({"app": APP});
    let terms =
        json!([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]}]);
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    let pod = json!({"affinity": affinity, "containers": [{"name": "c", "image": "none"}]});
    [
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": APP},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": APP, "annotations": {"surge.coordination.k8s.io/enabled": "true"}},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": pod}},
        }),
    ]
}
