//! `kubectl get --watch` shows a change when it happens.

use anyhow::Result;
use drydock_testkit::kinds;

use crate::shared::shared;

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_shows_each_change_of_a_maintenance() -> Result<()> {
    let shared = shared().await?;
    let kubectl = shared.kubectl();
    kubectl.apply(&kinds::node_maintenance("watched", "Idle", &["nowhere"])).await?;
    let mut watch = kubectl.follow(&["get", "nm", "watched", "--watch", "--output-watch-events"])?;
    watch.line_with(&["EVENT", "NAME", "STAGE"]).await?;
    watch.line_with(&["ADDED", "watched", "Idle"]).await?;
    kubectl.apply(&kinds::node_maintenance("watched", "Complete", &["nowhere"])).await?;
    watch.line_with(&["MODIFIED", "watched", "Complete"]).await?;
    kubectl.ok(&["delete", "nm", "watched"]).await?;
    watch.line_with(&["DELETED", "watched"]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_of_a_namespace_shows_a_request_from_its_start_to_its_end() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("kubectl-watch").await?;
    let node = shared.node("kubectl-watch").await?;
    let mut watch = namespace.kubectl.follow(&["get", "evreq", "--watch"])?;
    let uid = namespace.held_request("p", &node).await?;
    watch.line_with(&["NAME", "POD", "STATE"]).await?;
    // It is newer than the watch, and has an age all the same.
    let line = watch.line_with(&[&uid, "test.example.com", "Intercepting"]).await?;
    assert!(!line.contains("<invalid>"), "{line}");
    namespace.kubectl.ok(&["delete", "pod", "p", "--wait=false"]).await?;
    watch.line_with(&[&uid, "Evicted"]).await?;
    Ok(())
}
