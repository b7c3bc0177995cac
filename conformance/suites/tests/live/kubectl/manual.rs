//! `kubectl explain` is the manual.

use anyhow::Result;

use crate::shared::shared;

#[tokio::test(flavor = "multi_thread")]
async fn explain_knows_every_field_of_both_kinds() -> Result<()> {
    let kubectl = shared().await?.kubectl();
    let requests = kubectl.ok(&["explain", "evictionrequests", "--recursive"]).await?;
    let fields = [
        "requesters\t<[]Requester>",
        "target\t<EvictionTarget> -required-",
        "activeInterceptors\t<[]string>",
        "heartbeatTime\t<string>",
        "conditions\t<[]Condition>",
    ];
    for field in fields {
        assert!(requests.contains(field), "{field:?} is not in {requests}");
    }
    let maintenances = kubectl.ok(&["explain", "nodemaintenances", "--recursive"]).await?;
    let fields = [
        "nodeSelector\t<NodeSelector> -required-",
        "drainPlan\t<[]DrainPlanEntry>",
        "enum: Idle, Cordon, Drain, Complete",
        "blockers\t<[]Blocker>",
        "podsPendingEvacuation\t<integer>",
    ];
    for field in fields {
        assert!(maintenances.contains(field), "{field:?} is not in {maintenances}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_tells_what_a_field_means() -> Result<()> {
    let kubectl = shared().await?.kubectl();
    let explained = kubectl.ok(&["explain", "evreq.status.interceptors.heartbeatTime"]).await?;
    assert!(explained.contains("KIND:       EvictionRequest"), "{explained}");
    assert!(explained.contains("FIELD: heartbeatTime <string>"), "{explained}");
    assert!(!explained.contains("<empty>"), "{explained}");
    let explained = kubectl.ok(&["explain", "evreq.spec"]).await?;
    assert_eq!(explained.matches("Spec defines the eviction request").count(), 1, "{explained}");
    let explained = kubectl.ok(&["explain", "nm.spec.drainPlan"]).await?;
    assert!(explained.contains("podPriority\t<integer>") && !explained.contains("<empty>"), "{explained}");
    let refused = kubectl.refused(&["explain", "nm.spec.drainPlans"]).await?;
    assert!(refused.contains("drainPlans"), "{refused}");
    Ok(())
}
