//! Our own kinds as the host would have them: custom resources of the same schemas.

use anyhow::Result;
use drydock_api::eviction_request::EvictionRequestStrategy;
use drydock_api::node_maintenance::{NodeMaintenanceStrategy, defaults};
use drydock_machinery::kind::{Column, Kind};
use drydock_machinery::strategy::Strategy;
use drydock_testkit::crd::{self, CustomNames};
use drydock_testkit::drydock::Drydock;
use drydock_testkit::wait::api_available;
use serde_json::{Map, Value, json};

use crate::setup::servers::LIMIT;
use crate::target::{CUSTOM, MAINTENANCE, OWN, REQUEST, TargetKind};

/// Defines both, and waits until they are served.
pub async fn define(drydock: &Drydock) -> Result<()> {
    let client = drydock.direct().await?;
    let path = format!("/openapi/v3{}", OWN.root());
    let document = client.request::<Value>(http::Request::get(path).body(Vec::new())?).await?;
    let requests = EvictionRequestStrategy::new(std::time::Duration::ZERO).into_kind();
    let mut request = definition(&REQUEST, &document, requests.columns(), REQUEST_PATHS)?;
    *schema(&mut request, "status", "default") = json!({});
    let maintenances = NodeMaintenanceStrategy.into_kind();
    let mut maintenance = definition(&MAINTENANCE, &document, maintenances.columns(), MAINTENANCE_PATHS)?;
    *schema(&mut maintenance, "status", "default") = json!({"stageStatuses": [{"name": "Idle"}]});
    let mut spec = Map::new();
    defaults::default_spec(&mut spec);
    schema(&mut maintenance, "spec", "properties")["drainPlan"]["default"] =
        spec.remove("drainPlan").unwrap_or_default();
    for definition in [request, maintenance] {
        crd::install(&drydock.host, &definition)?;
    }
    let service = format!("{}.{}", CUSTOM.version, CUSTOM.group);
    api_available(&drydock.host.client().await?, &service, LIMIT).await
}

/// Where a custom resource has what our columns show, if a single field has it. What we count, or make of several
/// fields, has no path: other sequences test that.
const REQUEST_PATHS: &[&str] = &[
    ".spec.target.pod.name",
    ".spec.requesters[0].name",
    ".status.activeInterceptors[0]",
    ".status.state",
    ".status.eta",
    ".metadata.creationTimestamp",
    ".status.podInfo.nodeName",
    ".status.maintenance",
    ".status.heartbeat",
    ".status.processedInterceptors[0]",
    ".status.message",
];
const MAINTENANCE_PATHS: &[&str] = &[
    ".spec.stage",
    ".status.nodes",
    ".status.conditions[0].status",
    ".status.pending",
    ".status.evacuating",
    ".status.blocked",
    ".spec.reason",
    ".metadata.creationTimestamp",
    ".status.conditions[0].message",
];

fn definition(target: &TargetKind, document: &Value, columns: &[Column], paths: &[&str]) -> Result<Value> {
    let TargetKind { kind, plural, namespaced, theirs, .. } = *target;
    let names = CustomNames { group: theirs.group, version: theirs.version, kind, plural, namespaced };
    let mut definition = crd::definition(&names, document)?;
    let shown = columns.iter().skip(1).zip(paths).map(|(column, path)| {
        let type_ = if column.name == "Age" { "date" } else { column.type_ };
        json!({"name": column.name, "type": type_, "description": column.description,
               "priority": column.priority, "jsonPath": path})
    });
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = shown.collect();
    Ok(definition)
}

/// A keyword of a field's schema.
fn schema<'d>(definition: &'d mut Value, field: &str, keyword: &str) -> &'d mut Value {
    &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][field][keyword]
}
