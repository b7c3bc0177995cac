//! Validates the enumerations of a NodeMaintenance on the untyped object, because errors show the value that was
//! sent.

use drydock_machinery::Object;
use drydock_machinery::field::{Error, ErrorList, Path};
use serde_json::Value;

use super::types::{NodeMaintenanceStage, PodType};

/// Errors for unsupported stages and pod types in the spec.
pub fn validate_spec(object: &Object) -> ErrorList {
    let (path, mut errors) = (Path::new("spec"), ErrorList::new());
    let Some(spec) = object.0.get("spec") else { return errors };
    errors.extend(unsupported(spec.get("stage"), NodeMaintenanceStage::VALUES, &path.child("stage")));
    errors.extend(unsupported(spec.get("lastPodType"), PodType::VALUES, &path.child("lastPodType")));
    errors.extend(unsupported_types(spec.get("drainPlan"), &path.child("drainPlan")));
    errors
}

/// Errors for unsupported stages and pod types in the status.
pub fn validate_status(object: &Object) -> ErrorList {
    let (path, mut errors) = (Path::new("status"), ErrorList::new());
    let Some(status) = object.0.get("status") else { return errors };
    for (i, stage) in items(status.get("stageStatuses")).enumerate() {
        errors.extend(unsupported(
            stage.get("name"),
            NodeMaintenanceStage::VALUES,
            &path.child("stageStatuses").index(i).child("name"),
        ));
    }
    for (i, node) in items(status.get("nodeStatuses")).enumerate() {
        let path = path.child("nodeStatuses").index(i).child("drainTargets");
        errors.extend(unsupported_types(node.get("drainTargets"), &path));
    }
    errors
}

fn unsupported_types(entries: Option<&Value>, path: &Path) -> ErrorList {
    let each = items(entries).enumerate();
    each.filter_map(|(i, e)| unsupported(e.get("podType"), PodType::VALUES, &path.index(i).child("podType")))
        .collect()
}

fn unsupported(value: Option<&Value>, supported: &[&str], path: &Path) -> Option<Error> {
    let value = value.and_then(Value::as_str)?;
    (!supported.contains(&value)).then(|| Error::not_supported(path.clone(), value, supported))
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}
