//! EvictionRequests: one for each pod that is to leave, with our entry in it, and withdrawn when it is over.

use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::Pod;

use crate::REQUESTER;
use crate::actions::{Action, Decision, Task};
use crate::failures::{Failures, is_astray};
use crate::view::View;

/// Decides about the requests of all pods.
pub(crate) fn decide(view: &View<'_>, failures: &mut Failures, decision: &mut Decision) {
    ask(view, failures, decision);
    withdraw(view, failures, decision);
}

fn ask(view: &View<'_>, failures: &Failures, decision: &mut Decision) {
    let off = view.counted.iter().filter(|(node, _)| view.is_cordoned_off(node));
    for pod in off.flat_map(|(_, pods)| pods).filter(|p| view.targeted.contains(p.uid.as_str())) {
        let request = view.world.request(pod).map(|r| &**r);
        match failures.of(pod).filter(|failure| failure.holds_back(pod, request, view.now)) {
            Some(failure) => decision.wake_at(failure.again),
            None => {
                let action = wanted(pod, request).map(|action| (task(&pod.namespace, &pod.uid), action));
                decision.actions.extend(action);
            }
        }
    }
}

/// What is to be done so that a pod is asked to leave.
fn wanted(pod: &Pod, request: Option<&EvictionRequest>) -> Option<Action> {
    let ask = |request| Action::Ask { pod: pod.name.clone(), request };
    let Some(request) = request else { return Some(ask(None)) };
    // Its change wakes us when it is gone.
    if request.is_being_deleted() {
        return None;
    }
    if request.is_canceled() {
        let (request, resource_version) =
            (request.metadata.uid.clone(), request.metadata.resource_version.clone());
        return Some(Action::Replace { request, resource_version });
    }
    // The target cannot be changed: its end is awaited. Evicted is the end.
    let open = !is_astray(request, pod) && !request.is_finished() && !request.has_requester(REQUESTER);
    open.then(|| ask(Some(request.metadata.uid.clone())))
}

fn withdraw(view: &View<'_>, failures: &mut Failures, decision: &mut Decision) {
    for request in view.world.requests.values().filter(|r| r.has_requester(REQUESTER)) {
        let Some(target) = request.spec.target.pod.as_ref().filter(|_| is_over(view, request)) else {
            continue;
        };
        failures.withdraw(&request.metadata.uid);
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
