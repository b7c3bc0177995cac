//! Every pod that left a node, according to the host's audit log: who asked for its eviction, when, and when
//! it was gone.

use std::collections::{BTreeMap, BTreeSet};

use drydock_api::node_maintenance::PodType;
use drydock_testkit::host::audit::LoggedRequest;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

/// How one pod left.
#[derive(Clone, Debug)]
pub struct Departure {
    /// Its name.
    pub pod: String,
    /// Its label `app`.
    pub app: String,
    /// Where it ran.
    pub node: String,
    /// Its type in a drain plan.
    pub kind: PodType,
    /// Its priority.
    pub priority: i32,
    /// When it was bound to its node, in whole seconds.
    pub bound: Option<Timestamp>,
    /// When its eviction was first requested or tried.
    pub asked: Option<Timestamp>,
    /// When its kubelet deleted it; before that it was there.
    pub gone: Option<Timestamp>,
    /// How often the host accepted its eviction.
    pub evicted: usize,
    /// How often a budget forbade its eviction.
    pub refused: usize,
    /// Who deleted it, not counting its kubelet.
    pub deleted_by: BTreeSet<String>,
}

/// All departures, by the pod's UID.
pub type Departures = BTreeMap<String, Departure>;

/// Reads them from the host's log. A pod that was asked to leave and is still there is not among them.
pub fn departures(log: &[LoggedRequest]) -> Departures {
    let mut found = Departures::new();
    for request in log.iter().filter(|r| r.is_about("pods") && r.verb == "delete" && r.succeeded()) {
        deleted(&mut found, request);
    }
    for request in log {
        if request.is_about("pods/eviction") {
            evicted(&mut found, request);
        } else if request.is_about("evictionrequests") && request.succeeded() {
            // A request bears its pod's UID as its name.
            asked(&mut found, &request.object_ref.name, request.received);
        }
    }
    found
}

/// The UIDs whose eviction the host accepted, and how often: of pods that are still there too.
pub fn evictions(log: &[LoggedRequest]) -> BTreeMap<String, usize> {
    let mut accepted = BTreeMap::new();
    for request in log.iter().filter(|r| r.is_about("pods/eviction") && r.succeeded()) {
        *accepted.entry(target_of(request)).or_default() += 1;
    }
    accepted
}

fn deleted(found: &mut Departures, request: &LoggedRequest) {
    let Ok(pod) = serde_json::from_value::<Pod>(request.response_object.clone()) else { return };
    let Some(uid) = pod.uid() else { return };
    let departure = found.entry(uid).or_insert_with(|| departure(&pod));
    if pod.metadata.deletion_grace_period_seconds == Some(0) {
        departure.gone = request.received;
    } else {
        departure.deleted_by.insert(request.user.username.clone());
        departure.asked = earliest(departure.asked, request.received);
    }
}

fn evicted(found: &mut Departures, request: &LoggedRequest) {
    let uid = target_of(request);
    asked(found, &uid, request.received);
    let Some(departure) = found.get_mut(&uid) else { return };
    departure.evicted += usize::from(request.succeeded());
    departure.refused += usize::from(request.response_status.code == 429);
}

/// The UID that an eviction is bound to; one that is bound to none is bound to the empty one.
fn target_of(request: &LoggedRequest) -> String {
    let uid = &request.request_object["deleteOptions"]["preconditions"]["uid"];
    uid.as_str().unwrap_or_default().to_owned()
}

fn asked(found: &mut Departures, uid: &str, at: Option<Timestamp>) {
    if let Some(departure) = found.get_mut(uid) {
        departure.asked = earliest(departure.asked, at);
    }
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

fn departure(pod: &Pod) -> Departure {
    let spec = pod.spec.as_ref();
    let controller = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let bound = conditions.filter(|c| c.type_ == "PodScheduled").find_map(|c| c.last_transition_time.clone());
    Departure {
        pod: pod.name_any(),
        app: pod.labels().get("app").cloned().unwrap_or_default(),
        node: spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
        kind: match controller.map(|owner| owner.kind.as_str()) {
            Some("DaemonSet") => PodType::DaemonSet,
            Some("Node") => PodType::Static,
            _ => PodType::Default,
        },
        priority: spec.and_then(|spec| spec.priority).unwrap_or_default(),
        bound: bound.map(|time| time.0),
        asked: None,
        gone: None,
        evicted: 0,
        refused: 0,
        deleted_by: BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(value: Value) -> LoggedRequest {
        serde_json::from_value(value).unwrap_or_default()
    }

    fn deletion(second: u8, user: &str, grace: u8) -> LoggedRequest {
        request(json!({
            "verb": "delete", "user": {"username": user}, "objectRef": {"resource": "pods", "name": "db-0"},
            "responseStatus": {"code": 200}, "requestReceivedTimestamp": format!("2026-01-01T00:00:{second:02}.5Z"),
            "responseObject": {
                "metadata": {"name": "db-0", "uid": "u", "deletionGracePeriodSeconds": grace, "labels": {"app": "db"}},
                "spec": {"nodeName": "n", "priority": 7, "containers": []},
            },
        }))
    }

    fn eviction(second: u8, uid: &str, code: u16) -> LoggedRequest {
        request(json!({
            "verb": "create", "objectRef": {"resource": "pods", "subresource": "eviction", "name": "db-0"},
            "responseStatus": {"code": code}, "requestReceivedTimestamp": format!("2026-01-01T00:00:{second:02}.5Z"),
            "requestObject": {"deleteOptions": {"preconditions": {"uid": uid}}},
        }))
    }

    #[test]
    fn a_pod_is_there_until_its_kubelet_deletes_it_for_good() {
        let log = [
            eviction(1, "u", 429),
            eviction(2, "u", 201),
            deletion(3, "someone", 30),
            deletion(4, "kwok", 0),
        ];
        let found = departures(&log);
        let db = &found["u"];
        assert_eq!((db.evicted, db.refused, db.priority, db.node.as_str()), (1, 1, 7, "n"));
        assert_eq!(db.asked, "2026-01-01T00:00:01.5Z".parse().ok());
        assert_eq!(db.gone, "2026-01-01T00:00:04.5Z".parse().ok());
        assert_eq!(db.deleted_by, BTreeSet::from(["someone".to_owned()]));
    }

    #[test]
    fn a_pod_of_the_same_name_and_another_uid_is_another_pod() {
        let found = departures(&[eviction(1, "other", 201), deletion(4, "kwok", 0)]);
        assert_eq!(found["u"].evicted, 0);
        assert_eq!(evictions(&[eviction(1, "other", 201)]), BTreeMap::from([("other".to_owned(), 1)]));
    }
}
