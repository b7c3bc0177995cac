//! `kubectl explain` is the manual.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use drydock_testkit::host::repository;
use serde_json::Value;

use crate::shared::shared;

/// What the names of our own schemas begin with.
const PACKAGE: &str = "io.k8s.api.coordination.v1alpha1.";

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
    for (kind, explained) in [("EvictionRequest", &requests), ("NodeMaintenance", &maintenances)] {
        for field in fields_of(kind)? {
            ensure!(explained.contains(&format!(" {field}\t<")), "{field:?} is not in {explained}");
        }
    }
    Ok(())
}

/// The fields of a kind and of what it contains of ours, from the OpenAPI document in the repository.
fn fields_of(kind: &str) -> Result<BTreeSet<String>> {
    let document = std::fs::read_to_string(repository().join("apiserver/api/openapi/v3.json"))?;
    let document: Value = serde_json::from_str(&document)?;
    let (mut fields, mut schemas) = (BTreeSet::new(), vec![format!("{PACKAGE}{kind}")]);
    while let Some(schema) = schemas.pop() {
        let properties = &document["components"]["schemas"][&schema]["properties"];
        fields.extend(properties.as_object().into_iter().flatten().map(|(field, _)| field.clone()));
        let referred = properties.to_string();
        let referred = referred.split('"').filter_map(|text| text.strip_prefix("#/components/schemas/"));
        schemas.extend(referred.filter(|name| name.starts_with(PACKAGE)).map(str::to_owned));
    }
    ensure!(fields.len() > 4, "the document has no fields of {kind}");
    Ok(fields)
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
