//! Processes that end and processes that take over: nothing is lost, and nothing comes late.

use anyhow::{Context, Result, bail, ensure};
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::{TestHost, client_of};
use drydock_testkit::kinds::{node_maintenance, node_maintenances};
use drydock_testkit::wait::{LIMIT, retry, until};
use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use serde_json::json;

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
    is_written(&admin, "one").await?;

    match write_as_manager(&drydock, "one", 1).await? {
        Err(kube::Error::Api(status)) => {
            assert_eq!((status.code, status.reason.as_str()), (409, "FencingTokenRefused"), "{status:?}");
            assert!(status.message.contains("fencing token 1 is outdated"), "{status:?}");
        }
        other => bail!("not refused: {other:?}"),
    }
    Ok(())
}

const MANAGER: &str = "drydock-controller-manager";

/// Writes the status of a maintenance as the user of the controllers, with this fencing token; returns the answer.
async fn write_as_manager(drydock: &Drydock, name: &str, token: u64) -> Result<kube::Result<String>> {
    let groups = ["system:serviceaccounts", "system:serviceaccounts:drydock-system"];
    let user = "system:serviceaccount:drydock-system:drydock-controller-manager";
    let leader = client_of(&drydock.host.kubeconfig(user, &groups)?).await?;
    let uri = format!("/apis/coordination.k8s.io/v1alpha1/nodemaintenances/{name}/status");
    let request = http::Request::patch(uri)
        .header("content-type", "application/merge-patch+json")
        .header("drydock-lease-epoch", token)
        .body(br#"{"status":{"observedGeneration":1}}"#.to_vec())?;
    Ok(leader.request_text(request).await)
}

/// When the term of a Lease began, and when it was renewed last.
fn times(lease: Option<&Lease>) -> Option<[Timestamp; 2]> {
    let spec = lease?.spec.as_ref()?;
    Some([spec.acquire_time.as_ref()?.0, spec.renew_time.as_ref()?.0])
}

/// Creates a maintenance, and waits until the controllers have written its status.
async fn is_written(admin: &Api<DynamicObject>, name: &str) -> Result<()> {
    create(admin, name).await?;
    let seen =
        |object: Option<&DynamicObject>| object.is_some_and(|o| o.data["status"]["observedGeneration"] == 1);
    until(admin.clone(), name, LIMIT, "written by the controllers", seen).await.map(drop)
}

/// The messages of the events about refused terms.
async fn refusals(events: &Api<Event>) -> Result<Vec<String>> {
    let found = events.list(&ListParams::default().fields("reason=FencingTokenRefused")).await?;
    Ok(found.into_iter().filter_map(|event| event.message).collect())
}

/// The clock of one leader was in 2036, once: every write of the controllers after it was refused for ten years, while they
/// were ready and held the Lease.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_lease_of_2036_the_controllers_write_again() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    let client = drydock.host.client().await?;
    let admin = node_maintenances(&client);
    let leases: Api<Lease> = Api::namespaced(client.clone(), "drydock-system");
    let events: Api<Event> = Api::namespaced(client, "drydock-system");
    is_written(&admin, "before").await?;

    let ahead: Timestamp = "2036-01-01T00:00:00Z".parse()?;
    let patch = json!({"spec": {"acquireTime": "2036-01-01T00:00:00.000000Z"}});
    let patched = leases.patch(MANAGER, &PatchParams::default(), &Patch::Merge(patch)).await?;
    let [acquired, _] = times(Some(&patched)).context("no times")?;
    ensure!(acquired == ahead, "{acquired}");
    // Only a refused write shows that the number is wrong; one that was under way has the right one still.
    let mut count = 0;
    let late = || "the Lease stays in 2036".to_owned();
    retry(LIMIT, late, async || {
        count += 1;
        is_written(&admin, &format!("ahead-{count}")).await?;
        let lease = leases.get_opt(MANAGER).await?;
        Ok(times(lease.as_ref()).is_some_and(|[acquired, _]| acquired < ahead))
    })
    .await?;

    // The newest number is most of a day ahead, and the Lease is made anew.
    ensure!(drydock.kill_manager()?);
    create(&admin, "late").await?;
    leases.delete(MANAGER, &DeleteParams::default()).await?;
    let newest = Timestamp::now().checked_add(SignedDuration::from_hours(23))?;
    let token = u64::try_from(newest.as_microsecond())?;
    write_as_manager(&drydock, "late", token).await??;
    drydock.start_manager().await?;
    is_written(&admin, "anew").await?;
    let [again, _] = times(leases.get_opt(MANAGER).await?.as_ref()).context("no times")?;
    ensure!(again > newest, "{again}");
    let late = || "no events about both refusals".to_owned();
    retry(LIMIT, late, async || {
        let told = refusals(&events).await?;
        let of = |words: &str| told.iter().any(|message| message.contains(words));
        Ok(of("too far ahead of its clock") && of("has written as the same user"))
    })
    .await
}
