//! EvictionRequests: one for each pod that is to leave, with our entry in it, and withdrawn when it is over.

use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::Pod;
use jiff::Timestamp;

use crate::REQUESTER;
use crate::actions::{Action, Decision, Task};
use crate::failures::{Failures, is_astray};
use crate::view::View;

/// Decides about the requests of all pods.
pub(crate) fn decide(view: &View<'_>, failures: &mut Failures, decision: &mut Decision) {
    ask(view, failures, decision);
    withdraw(view, failures, decision);
}

fn ask(view: &View<'_>, failures: &mut Failures, decision: &mut Decision) {
    let off = view.counted.iter().filter(|(node, _)| view.is_cordoned_off(node));
    let asked = |pod: &Pod| view.targeted.contains(pod.uid.as_str()) && !view.stays(&pod.uid);
    for pod in off.flat_map(|(_, pods)| pods).filter(|pod| asked(pod)) {
        let request = view.world.request(pod).map(|r| &**r);
        match failures.of(pod).filter(|failure| failure.holds_back(pod, request, view.now)) {
            Some(failure) => decision.wake_at(failure.again),
            None => {
                let Some(action) = wanted(pod, request) else { continue };
                if let Action::Ask { request: Some(request), .. } = &action {
                    failures.ask(request);
                }
                decision.actions.insert(task(&pod.namespace, &pod.uid), action);
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
    if request.is_finished() || is_astray(request, pod) {
        return Some(Action::Replace { request: request.metadata.uid.clone() });
    }
    let joins = !request.has_requester(REQUESTER);
    joins.then(|| ask(Some(request.metadata.uid.clone())))
}

fn withdraw(view: &View<'_>, failures: &mut Failures, decision: &mut Decision) {
    let mut withdrawn = Vec::new();
    for request in view.world.requests.values().filter(|r| is_ours(r, failures)) {
        let Some(target) = request.spec.target.pod.as_ref().filter(|_| is_over(view, request)) else {
            continue;
        };
        withdrawn.push(request.metadata.uid.as_str());
        let action = Action::Withdraw { pod: target.name.clone(), request: request.metadata.uid.clone() };
        decision.actions.insert(task(&request.metadata.namespace, &request.metadata.name), action);
    }
    withdrawn.into_iter().for_each(|request| failures.withdraw(request));
}

/// Whether a request has our requester, and it was us who asked.
fn is_ours(request: &EvictionRequest, failures: &Failures) -> bool {
    request.has_requester(REQUESTER) && !failures.has_let_go(&request.metadata.uid)
}

/// Whether our part in a request is over: it is Evicted, no maintenance drains the pod's node any more, or the pod is one
/// of Drydock's that must stay. While the pod is gone and the request says nothing of it yet, it is about to be Evicted.
fn is_over(view: &View<'_>, request: &EvictionRequest) -> bool {
    let uid = &request.metadata.name;
    match view.world.located.get(uid) {
        Some(node) => request.is_evicted() || !view.is_draining(node) || view.stays(uid),
        None => request.is_finished(),
    }
}

/// Whether a request that we made for a pod on this node before `end` is still open. Our requester's name is anybody's to
/// write, and whoever makes requests with it later keeps nothing from its end.
pub(crate) fn is_open_on(view: &View<'_>, failures: &Failures, node: &str, end: Option<Timestamp>) -> bool {
    let pods = view.world.pods.get(node).into_iter().flatten();
    let mut requests = pods.filter_map(|pod| view.world.request(pod));
    let is_earlier = |request: &EvictionRequest| match (request.metadata.creation_timestamp, end) {
        (Some(made), Some(end)) => made <= end,
        _ => true,
    };
    requests.any(|request| is_earlier(request) && is_ours(request, failures))
}

fn task(namespace: &str, uid: &str) -> Task {
    Task::Request(namespace.to_owned(), uid.to_owned())
}
