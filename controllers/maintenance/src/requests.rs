//! EvictionRequests: one for each pod that is to leave, with our entry in it, and withdrawn when it is over.

use drydock_api::eviction_request::{CANCELED, EvictionRequest, REASON_NO_REQUESTERS};
use drydock_api::meta::find_condition;
use drydock_runtime::Pod;

use crate::REQUESTER;
use crate::actions::{Action, Decision, Task};
use crate::view::View;

/// Decides about the requests of all pods.
pub(crate) fn decide(view: &View<'_>, decision: &mut Decision) {
    ask(view, decision);
    withdraw(view, decision);
}

fn ask(view: &View<'_>, decision: &mut Decision) {
    let off = view.counted.iter().filter(|(node, _)| view.is_cordoned_off(node));
    for pod in off.flat_map(|(_, pods)| pods).filter(|p| view.targeted.contains(p.uid.as_str())) {
        if let Some(action) = wanted(pod, view.world.request(pod).map(|r| &**r)) {
            decision.actions.insert(task(&pod.namespace, &pod.uid), action);
        }
    }
}

/// What is to be done so that a pod is asked to leave.
fn wanted(pod: &Pod, request: Option<&EvictionRequest>) -> Option<Action> {
    let ask = |request| Action::Ask { pod: pod.name.clone(), request };
    let Some(request) = request else { return Some(ask(None)) };
    if request.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let canceled = find_condition(&request.status.conditions, CANCELED).filter(|c| c.is_true());
    // Somebody made a request of this pod's UID for another name: it serves no pod, and stands in the way of ours.
    let astray = request.spec.target.pod.as_ref().is_some_and(|target| target.name != pod.name);
    if astray && canceled.is_none() {
        return None;
    }
    if canceled.is_some_and(|c| astray || c.reason == REASON_NO_REQUESTERS) {
        let (request, resource_version) =
            (request.metadata.uid.clone(), request.metadata.resource_version.clone());
        return Some(Action::Replace { request, resource_version });
    }
    // Canceled for another reason is a blocker, not a loop; Evicted is the end.
    let open = !request.is_finished() && !request.has_requester(REQUESTER);
    open.then(|| ask(Some(request.metadata.uid.clone())))
}

fn withdraw(view: &View<'_>, decision: &mut Decision) {
    for request in view.world.requests.values().filter(|r| r.has_requester(REQUESTER)) {
        let Some(target) = request.spec.target.pod.as_ref().filter(|_| is_over(view, request)) else {
            continue;
        };
        let action = Action::Withdraw { pod: target.name.clone(), request: request.metadata.uid.clone() };
        decision.actions.insert(task(&request.metadata.namespace, &request.metadata.name), action);
    }
}

/// Whether our part in a request is over: it is Evicted, or no maintenance drains the pod's node any more. While the
/// pod is gone and the request says nothing of it yet, it is about to be Evicted.
fn is_over(view: &View<'_>, request: &EvictionRequest) -> bool {
    match view.world.located.get(&request.metadata.name) {
        Some(node) => request.is_evicted() || !view.is_draining(node),
        None => request.is_finished(),
    }
}

/// Whether a request that we made for a pod on this node is still open.
pub(crate) fn is_open_on(view: &View<'_>, node: &str) -> bool {
    let pods = view.world.pods.get(node).into_iter().flatten();
    let mut requests = pods.filter_map(|pod| view.world.request(pod));
    requests.any(|r| r.has_requester(REQUESTER))
}

fn task(namespace: &str, uid: &str) -> Task {
    Task::Request(namespace.to_owned(), uid.to_owned())
}
