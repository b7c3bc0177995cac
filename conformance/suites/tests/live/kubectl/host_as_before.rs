//! What the host served without us is there as it was.

use anyhow::Result;

use crate::shared::{Before, shared};

#[tokio::test(flavor = "multi_thread")]
async fn api_resources_gain_two_rows_and_are_otherwise_as_before() -> Result<()> {
    let shared = shared().await?;
    let now = shared.kubectl().ok(&["api-resources", "--output=wide"]).await?;
    let squeeze = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let (before, now) = (squeeze(&shared.before.api_resources), squeeze(&now));
    let gained: Vec<&String> = now.iter().filter(|line| !before.contains(line)).collect();
    let verbs = "create,delete,deletecollection,get,list,patch,update,watch";
    assert_eq!(
        gained,
        [
            &format!("evictionrequests evreq coordination.k8s.io/v1alpha1 true EvictionRequest {verbs}"),
            &format!("nodemaintenances nm coordination.k8s.io/v1alpha1 false NodeMaintenance {verbs}"),
        ]
    );
    let kept: Vec<&String> = now.iter().filter(|line| before.contains(line)).collect();
    assert_eq!(kept, before.iter().collect::<Vec<_>>());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_the_hosts_as_before() -> Result<()> {
    let shared = shared().await?;
    let kubectl = shared.kubectl();
    assert_eq!(kubectl.ok(&Before::LEASES).await?, shared.before.leases);
    let lease = kubectl.object("leases", "as-before").await?;
    assert_eq!(
        lease["apiVersion"], "coordination.k8s.io/v1",
        "the host's own version is no longer preferred"
    );
    let explained = kubectl.ok(&["explain", "leases.spec.holderIdentity"]).await?;
    assert!(explained.contains("VERSION:    v1\n"), "{explained}");
    Ok(())
}
