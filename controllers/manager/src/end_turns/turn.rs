//! Whose turn it is in a request, and whether it is one that the command ends. Pure.

use std::collections::HashSet;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::interceptors::is_default;
use drydock_api::eviction_request::pod_labels::NODE_MAINTENANCE;
use drydock_api::eviction_request::transitions::index_of;
use drydock_api::node_maintenance::{NodeMaintenance, PodType};

/// The pods of a maintenance: by node and type, as the controller has written them into the request.
#[derive(Clone, Debug)]
pub(super) struct DrainScope {
    nodes: HashSet<String>,
    last_type: PodType,
}

/// What is to be done about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TurnState {
    /// Nothing: it is about a pod of others, it is over, or a default interceptor has its turn or is next. That one may have
    /// to wait for the grace period of the pod.
    Nothing,
    /// The turn of this interceptor is to be ended; those that come after it have turns too.
    End(String, Vec<String>),
    /// A turn has ended, and the controller has not given the next one yet, which is to be ended too.
    PassesOn,
}

impl DrainScope {
    pub(super) fn of(maintenance: &NodeMaintenance) -> Self {
        let nodes = maintenance.status.node_statuses.iter().map(|node| node.node_ref.name.clone());
        Self { nodes: nodes.collect(), last_type: maintenance.spec.last_pod_type }
    }

    pub(super) fn state_of(&self, request: &EvictionRequest) -> TurnState {
        let pod = request.status.pod_info.as_ref();
        let is_in = pod.is_some_and(|pod| {
            let pod_type =
                if pod.pod_type.is_empty() { Some(PodType::Default) } else { PodType::parse(&pod.pod_type) };
            self.nodes.contains(&pod.node_name) && pod_type.is_some_and(|it| it <= self.last_type)
        });
        let is_asked = request.is_wanted() && request.has_requester(NODE_MAINTENANCE);
        match request.active_interceptor_status() {
            Some(active) if is_in && is_asked && !is_default(&active.name) => {
                let later = later(request, &active.name);
                match active.completion_time {
                    Some(_) if later.is_empty() => TurnState::Nothing,
                    Some(_) => TurnState::PassesOn,
                    None => TurnState::End(active.name.clone(), later),
                }
            }
            _ => TurnState::Nothing,
        }
    }
}

/// The pod's own interceptors after this one.
fn later(request: &EvictionRequest, active: &str) -> Vec<String> {
    let from = index_of(&request.status, active).map_or(usize::MAX, |at| at.saturating_add(1));
    let targets = request.status.target_interceptors.iter().skip(from);
    targets.map(|target| target.name.clone()).filter(|name| !is_default(name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(status: Value) -> EvictionRequest {
        let mut status = status;
        status["targetInterceptors"] =
            json!([{"name": "a.b"}, {"name": "c.d"}, {"name": "imperative-eviction.k8s.io"}]);
        let spec = json!({"requesters": [{"name": NODE_MAINTENANCE}]});
        serde_json::from_value(json!({"spec": spec, "status": status})).unwrap_or_default()
    }

    fn turn(node: &str, pod_type: &str, active: &str, completed: Value) -> EvictionRequest {
        request(json!({
            "podInfo": {"nodeName": node, "priority": 0, "podType": pod_type}, "activeInterceptors": [active],
            "interceptors": [{"name": active, "message": "", "completionTime": completed}],
        }))
    }

    fn scope() -> DrainScope {
        DrainScope { nodes: HashSet::from(["n".to_owned()]), last_type: PodType::DaemonSet }
    }

    #[test]
    fn turns_of_the_pods_own_interceptors_end_and_no_others() {
        let state = |request: &EvictionRequest| scope().state_of(request);
        let ends = TurnState::End("a.b".to_owned(), vec!["c.d".to_owned()]);
        assert_eq!(state(&turn("n", "Default", "a.b", Value::Null)), ends);
        assert_eq!(
            state(&turn("n", "DaemonSet", "c.d", Value::Null)),
            TurnState::End("c.d".to_owned(), vec![])
        );
        assert_eq!(state(&turn("n", "Default", "a.b", json!("2026-01-01T00:00:00Z"))), TurnState::PassesOn);
        // The command failed while such a pod was terminating, though nothing was left to do.
        assert_eq!(state(&turn("n", "Default", "c.d", json!("2026-01-01T00:00:00Z"))), TurnState::Nothing);
        for other in [
            turn("other", "Default", "a.b", Value::Null),
            turn("n", "Static", "a.b", Value::Null),
            turn("n", "Odd", "a.b", Value::Null),
            turn("n", "Default", "imperative-eviction.k8s.io", Value::Null),
            request(json!({})),
        ] {
            assert_eq!(state(&other), TurnState::Nothing, "{other:?}");
        }
    }

    /// A tenant names the maintenance in the annotation of a request of his own, or takes ours out of it.
    #[test]
    fn a_request_that_the_maintenance_does_not_make_keeps_its_turns() {
        let mut theirs = turn("n", "Default", "a.b", Value::Null);
        theirs.spec.requesters =
            serde_json::from_value(json!([{"name": "tenant.example.com"}])).unwrap_or_default();
        assert_eq!(scope().state_of(&theirs), TurnState::Nothing);
    }
}
