//! Our own two kinds beside custom resources of the same schemas.
//!
//! A custom resource has its schema and no rules beside it, and a name of its own for some errors: sequences
//! here are legal by both, or refused by both. Most begin with an apply, because the entry in managedFields
//! that an update leaves when it creates is one of the differences between any compiled-in kind and any
//! custom resource; sequences of creation have it in the list.

mod applies;
mod creation;
mod deletion;
mod maintenances;
mod patches;
mod reads;
mod status;
mod updates;
mod watches;

use serde_json::{Value, json};

use crate::area::Area;
use crate::sequence::{Sequence, merge, object};
use crate::target::{MAINTENANCE, REQUEST};

pub(super) fn all() -> Vec<Sequence> {
    let files = [
        creation::all(),
        updates::all(),
        patches::all(),
        applies::all(),
        status::all(),
        deletion::all(),
        reads::all(),
        watches::all(),
        maintenances::all(),
    ];
    files.into_iter().flatten().collect()
}

/// The name of the first request of a sequence: the name of a request is the UID of its pod.
const X: &str = "00000000-0000-1000-8000-000000000001";
/// The name of the second request.
const Y: &str = "00000000-0000-1000-8000-000000000002";

/// A valid request, with something else.
fn request(name: &str, rest: Value) -> Value {
    let target = json!({"pod": {"name": "p", "uid": name}});
    let mut request =
        object(name, json!({"spec": {"target": target, "requesters": asked_by(&["a.example.com"])}}));
    merge(&mut request, rest);
    request
}

/// Returns the requesters with these names.
fn asked_by(requesters: &[&str]) -> Value {
    requesters.iter().map(|name| json!({"name": name})).collect()
}

/// A sequence that begins with a request.
fn made(area: Area, name: &str) -> Sequence {
    made_with(area, name, json!({}))
}

/// A sequence that begins with a request that has something else.
fn made_with(area: Area, name: &str, rest: Value) -> Sequence {
    of(area, name).apply(X, "maker", request(X, rest))
}

/// A sequence that begins with a request that has a status. Without it, a custom resource that was written once has
/// the default status of its schema, and the next write of any kind changes the object.
fn settled(area: Area, name: &str) -> Sequence {
    let status = json!({"status": {"observedGeneration": 1}});
    made(area, name).apply(&format!("{X}/status"), "controller", status)
}

fn of(area: Area, name: &str) -> Sequence {
    Sequence::new(area, REQUEST, format!("request: {name}"))
}

/// The name of the first maintenance of a sequence; all sequences share the names of maintenances.
const M: &str = "$(namespace)-m";
/// The name of the second maintenance.
const N: &str = "$(namespace)-n";

/// A valid maintenance of no node, with something else.
fn maintenance(name: &str, rest: Value) -> Value {
    let nowhere =
        json!({"key": "node-restriction.kubernetes.io/name", "operator": "In", "values": ["nowhere"]});
    let selector = json!({"nodeSelectorTerms": [{"matchExpressions": [nowhere]}]});
    let mut maintenance = object(name, json!({"spec": {"nodeSelector": selector}}));
    merge(&mut maintenance, rest);
    maintenance
}

fn of_maintenance(area: Area, name: &str) -> Sequence {
    Sequence::new(area, MAINTENANCE, format!("maintenance: {name}"))
}

/// A sequence that begins with a maintenance, which has a label that selects it.
fn maintained(area: Area, name: &str) -> Sequence {
    let labels = json!({"metadata": {"labels": {"of": "$(namespace)"}}});
    of_maintenance(area, name).apply(M, "maker", maintenance(M, labels))
}

/// Labels.
fn labels(labels: Value) -> Value {
    json!({"metadata": {"labels": labels}})
}
