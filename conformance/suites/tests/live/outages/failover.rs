//! Processes that end and processes that take over: nothing is lost, and nothing comes late.

use anyhow::{Context, Result, bail};
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::{TestHost, client_of};
use drydock_testkit::kinds::{node_maintenance, node_maintenances};
use drydock_testkit::wait::{LIMIT, until};
use futures::StreamExt;
use kube::api::{Api, DynamicObject, PostParams, WatchEvent, WatchParams};

async fn create(api: &Api<DynamicObject>, name: &str) -> Result<String> {
    let object = serde_json::from_value(node_maintenance(name, "Idle", &["nowhere"]))?;
    let created = api.create(&PostParams::default(), &object).await?;
    created.metadata.resource_version.context("no resourceVersion")
}

#[tokio::test(flavor = "multi_thread")]
async fn at_sigterm_a_watch_ends_in_order_and_goes_on_where_it_was() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    // No controller writes in between.
    drydock.kill_manager()?;
    let api = node_maintenances(&drydock.direct().await?);
    let before = create(&api, "before").await?;
    let mut watch = api.watch(&WatchParams::default(), &before).await?.boxed();
    let during = create(&api, "during").await?;
    let Some(WatchEvent::Added(seen)) = watch.next().await.transpose()? else { bail!("no event") };
    assert_eq!(seen.metadata.resource_version.as_deref(), Some(during.as_str()));

    // Both at once: the server ends only when its watches have.
    let rest = watch.map(|event| event.map(|event| format!("{event:?}"))).collect::<Vec<_>>();
    let (ended, rest) = tokio::join!(drydock.stop_apiserver(), tokio::time::timeout(LIMIT, rest));
    assert!(ended?.success());
    for event in rest.context("the watch outlived its server")? {
        let event = event.context("the watch was cut")?;
        assert!(event.starts_with("Bookmark"), "{event}");
    }

    drydock.start_apiserver().await?;
    let after = create(&api, "after").await?;
    let mut watch = api.watch(&WatchParams::default(), &during).await?.boxed();
    let Some(WatchEvent::Added(seen)) = watch.next().await.transpose()? else { bail!("no event") };
    assert_eq!(seen.metadata.resource_version.as_deref(), Some(after.as_str()));
    Ok(())
}

/// The user is the leader itself: no other user can end its terms.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_write_of_an_older_leader_is_refused_through_the_aggregator() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    let admin = node_maintenances(&drydock.host.client().await?);
    create(&admin, "one").await?;
    let seen =
        |object: Option<&DynamicObject>| object.is_some_and(|o| o.data["status"]["observedGeneration"] == 1);
    until(admin.clone(), "one", LIMIT, "seen by the leader", seen).await?;

    let groups = ["system:serviceaccounts", "system:serviceaccounts:drydock-system"];
    let user = "system:serviceaccount:drydock-system:drydock-controller-manager";
    let leader = client_of(&drydock.host.kubeconfig(user, &groups)?).await?;
    let late = || {
        let uri = "/apis/coordination.k8s.io/v1alpha1/nodemaintenances/one/status";
        let request = http::Request::patch(uri).header("content-type", "application/merge-patch+json");
        request.header("drydock-lease-epoch", "1").body(br#"{"status":{"observedGeneration":null}}"#.to_vec())
    };
    match leader.request_text(late()?).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 409, "{status:?}");
            assert!(status.message.contains("fencing token 1 is outdated"), "{status:?}");
        }
        other => bail!("not refused: {other:?}"),
    }
    Ok(())
}
