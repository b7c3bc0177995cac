//! Drains on the real host: pods leave in the order of the plans, whatever happens meanwhile.

mod beside;
mod blockers;
mod events;
mod inert;
mod labels;
mod late;
mod order;
mod restart;
mod selectors;
mod turns;
mod types;
mod unschedulable;
mod unserved;

use anyhow::{Context, Result, ensure};
use drydock_testkit::kinds::node_maintenances;
use drydock_testkit::wait::{LIMIT, retry, until};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{Api, DynamicObject, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, Error, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A Deployment with these pods.
fn deployment(name: &str, replicas: i32, spec: Value) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": spec}},
    })
}

/// A NodeMaintenance in Drain of the nodes with a label, with a plan of its own.
fn labelled(name: &str, label: &str, plan: &Value) -> Value {
    let selected = json!({"key": label, "operator": "Exists"});
    json!({
        "apiVersion": drydock_api::API_VERSION, "kind": "NodeMaintenance", "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [selected]}]},
            "stage": "Drain", "reason": "a test", "drainPlan": plan,
        },
    })
}

/// A class of pods with this priority.
async fn priority_class(client: &Client, name: &str, value: i32) -> Result<()> {
    let class: PriorityClass = serde_json::from_value(json!({"metadata": {"name": name}, "value": value}))?;
    Api::all(client.clone()).create(&PostParams::default(), &class).await?;
    Ok(())
}

/// Creates a pod of a priority class on a node, with these labels.
async fn pod(pods: &Api<Pod>, name: &str, node: &str, class: &str, labels: Value) -> Result<()> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": node, "priorityClassName": class,
                 "containers": [{"name": "c", "image": "none"}], "tolerations": [{"operator": "Exists"}]},
    }))?;
    let late = || format!("the host does not know the PriorityClass {class}");
    retry(LIMIT, late, async || match pods.create(&PostParams::default(), &pod).await {
        Ok(_) => Ok(true),
        // The host's admission reads classes from a cache, which a busy machine fills late.
        Err(Error::Api(status)) if status.message.contains("no PriorityClass with name") => Ok(false),
        Err(error) => Err(error.into()),
    })
    .await?;
    let runs = |pod: Option<&Pod>| phase(pod) == Some("Running");
    until(pods.clone(), name, LIMIT, "running", runs).await.map(drop)
}

/// A budget that never lets the pod with this label, and of this name, go.
fn budget(name: &str) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}},
    })
}

fn phase(pod: Option<&Pod>) -> Option<&str> {
    pod?.status.as_ref()?.phase.as_deref()
}

/// Waits until a maintenance says that it is drained, or that it is not.
async fn drained(client: &Client, maintenance: &str, is: &str) -> Result<()> {
    let says = |object: Option<&DynamicObject>| {
        let conditions = object.and_then(|o| o.data["status"]["conditions"].as_array());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|c| c["type"] == "Drained" && c["status"] == is)
    };
    until(node_maintenances(client), maintenance, LIMIT, &format!("Drained={is}"), says).await.map(drop)
}

/// What happens to the pods of a namespace, in the order of the host's events.
struct Departures(JoinHandle<Result<Vec<(String, Departure)>>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Departure {
    /// It has been asked to terminate.
    Begins,
    /// It is gone.
    Ends,
}

impl Departures {
    /// Notes them from now on, until so many pods are gone.
    async fn of(pods: &Api<Pod>, count: usize) -> Result<Self> {
        let from =
            pods.list(&ListParams::default()).await?.metadata.resource_version.context("no version")?;
        let mut events = Box::pin(pods.watch(&WatchParams::default(), &from).await?);
        Ok(Self(tokio::spawn(async move {
            let mut seen = Vec::new();
            while seen.iter().filter(|(_, departure)| *departure == Departure::Ends).count() < count {
                match events.try_next().await?.context("the watch has ended")? {
                    WatchEvent::Deleted(pod) => seen.push((pod.name_any(), Departure::Ends)),
                    WatchEvent::Modified(pod) if pod.metadata.deletion_timestamp.is_some() => {
                        seen.push((pod.name_any(), Departure::Begins));
                    }
                    WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
                    _ => {}
                }
            }
            Ok(seen)
        })))
    }

    /// Fails unless each of these groups of pods was gone before one of the next began to leave.
    async fn are_in_order(self, tiers: &[&[&str]]) -> Result<()> {
        let seen = tokio::time::timeout(LIMIT, self.0).await.context("not all pods left")???;
        let place = |pod: &str, what: &dyn Fn(Departure) -> bool| {
            let found = seen.iter().position(|(name, departure)| name == pod && what(*departure));
            found.with_context(|| format!("{pod} is not in {seen:?}"))
        };
        for pair in tiers.windows(2) {
            let [earlier, later] = pair else { continue };
            for (before, after) in earlier.iter().flat_map(|b| later.iter().map(move |a| (b, a))) {
                let (ended, began) = (place(before, &|d| d == Departure::Ends)?, place(after, &|_| true)?);
                ensure!(ended < began, "{after} left before {before} was gone: {seen:?}");
            }
        }
        Ok(())
    }
}
