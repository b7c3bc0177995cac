//! The events about a maintenance and its nodes.

use anyhow::{Context, Result, ensure};
use drydock_testkit::kinds::named_node_maintenance;
use drydock_testkit::wait::retry;
use serde_json::{Value, json};

use super::{LIMIT, drained};
use crate::shared::{Namespace, shared};

#[tokio::test(flavor = "multi_thread")]
async fn the_steps_of_a_maintenance_are_events_in_their_order() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("steps").await?;
    let node = shared.node("steps").await?;
    namespace.pod("goes", &node, json!({})).await?;
    namespace.kubectl.apply(&named_node_maintenance("steps", "Drain", &[&node])).await?;
    drained(&namespace.client, "steps", "True").await?;
    let complete = ["patch", "nodemaintenance/steps", "-p", r#"{"spec":{"stage":"Complete"}}"#];
    namespace.kubectl.ok(&complete).await?;
    let steps = ["Cordoned", "DrainStarted", "NodeDrained", "Completed"];
    let late = || format!("the events of the maintenance are not {steps:?}");
    retry(LIMIT, late, async || {
        let events = events(&namespace, "NodeMaintenance", "steps").await?;
        let of = |step: &&str| events.iter().find(|event| event["reason"] == **step);
        let Some(found) = steps.iter().map(of).collect::<Option<Vec<_>>>() else { return Ok(false) };
        let times: Vec<&str> = found.iter().filter_map(|event| event["lastTimestamp"].as_str()).collect();
        ensure!(times.len() == steps.len() && times.is_sorted(), "{found:?}");
        Ok(true)
    })
    .await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/steps"]).await.map(drop)
}

/// The controller cordoned the node again within seconds, and no event said why.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_uncordons_a_node_under_maintenance_is_told_which_maintenance_holds_it() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("uncordons").await?;
    let node = shared.node("uncordons").await?;
    namespace.kubectl.apply(&named_node_maintenance("uncordons", "Cordon", &[&node])).await?;
    let cordoned = ["wait", "nodemaintenance/uncordons", "--for=condition=Cordoned"];
    namespace.kubectl.ok(&cordoned).await?;
    namespace.kubectl.ok(&["uncordon", &node]).await?;
    let late = || format!("no event of node {node} and its maintenance names the maintenance");
    for (kind, name) in [("Node", node.as_str()), ("NodeMaintenance", "uncordons")] {
        retry(LIMIT, late, async || {
            let found = events(&namespace, kind, name).await?;
            let mut conflicts = found.iter().filter(|event| event["reason"] == "CordonConflict");
            let words = "under maintenance: uncordons (stage Cordon)";
            Ok(conflicts
                .any(|event| event["message"].as_str().is_some_and(|message| message.contains(words))))
        })
        .await?;
    }
    namespace.kubectl.ok(&cordoned).await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/uncordons"]).await.map(drop)
}

/// Events about a cluster-scoped object.
async fn events(namespace: &Namespace, kind: &str, name: &str) -> Result<Vec<Value>> {
    let about = format!("involvedObject.kind={kind},involvedObject.name={name}");
    let list = ["get", "events", "--namespace=default", "--field-selector", &about, "--output=json"];
    let list: Value = serde_json::from_str(&namespace.kubectl.ok(&list).await?)?;
    list["items"].as_array().cloned().context("no items")
}
