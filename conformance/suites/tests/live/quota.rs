//! Quotas: the host's quota controller counts our objects, and follows them so as to see them go.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use drydock_testkit::kinds::{eviction_request, eviction_requests};
use drydock_testkit::wait::until;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::shared::{LIMIT, shared};

const COUNT: &str = "count/evictionrequests.coordination.k8s.io";
const UIDS: [&str; 2] = ["6a3c1a1c-7f3e-4f5e-9d0e-0123456789ab", "7a3c1a1c-7f3e-4f5e-9d0e-0123456789ab"];
/// The time after which the host is made to count again: it looks for new kinds every 30 seconds, and counts none before it
/// follows them.
const COUNT_AGAIN: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_counts_requests_and_sees_them_go() -> Result<()> {
    let namespace = shared().await?.namespace("quota").await?;
    let requests = eviction_requests(&namespace.client, &namespace.name);
    for uid in UIDS {
        let request = serde_json::from_value(eviction_request("p", uid, "test.example.com"))?;
        requests.create(&PostParams::default(), &request).await?;
    }
    let quotas: Api<ResourceQuota> = Api::namespaced(namespace.client.clone(), &namespace.name);
    let quota = json!({"metadata": {"name": "requests"}, "spec": {"hard": {COUNT: "100"}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;
    count(&quotas).await?;
    until(quotas.clone(), "requests", LIMIT, "at 2", |q: Option<&ResourceQuota>| used(q) == Some("2"))
        .await?;

    // Nothing changes the quota now, and the host counts all of them anew every five minutes only: what makes it count
    // is the watch of our objects.
    requests.delete(UIDS[0], &DeleteParams::default()).await?;
    until(quotas.clone(), "requests", LIMIT, "at 1", |q: Option<&ResourceQuota>| used(q) == Some("1"))
        .await?;
    requests.delete(UIDS[1], &DeleteParams::default()).await?;
    until(quotas, "requests", LIMIT, "at 0", |q: Option<&ResourceQuota>| used(q) == Some("0")).await?;
    Ok(())
}

/// Changes the limit to make the host count, until it can: it counts no objects of a kind that it does not follow
/// yet.
async fn count(quotas: &Api<ResourceQuota>) -> Result<()> {
    let began = Instant::now();
    for limit in 101.. {
        let patch = Patch::Merge(json!({"spec": {"hard": {COUNT: limit.to_string()}}}));
        quotas.patch("requests", &PatchParams::default(), &patch).await?;
        let counted = |quota: Option<&ResourceQuota>| used(quota).is_some();
        match until(quotas.clone(), "requests", COUNT_AGAIN, "counted", counted).await {
            Ok(_) => return Ok(()),
            Err(error) if began.elapsed() > LIMIT => return Err(error),
            Err(_) => {}
        }
    }
    bail!("no limit was high enough")
}

fn used(quota: Option<&ResourceQuota>) -> Option<&str> {
    let used = quota?.status.as_ref()?.used.as_ref()?;
    used.get(COUNT).map(|count| count.0.as_str())
}
