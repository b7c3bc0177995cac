//! EvictionRequests: puts our requester into one for each pod that is to leave, and withdraws it when that is
//! over.

pub(crate) mod failures;
pub(crate) mod outcomes;
pub(crate) mod returns;
pub(crate) mod turns;

use std::collections::HashMap;
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::maintenances::{MAX_MAINTENANCES, MaintenanceReference, encode};
use drydock_api::eviction_request::retention::kept_until;
use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage, PodType};
use drydock_runtime::Pod;
use jiff::Timestamp;

use crate::REQUESTER;
use crate::actions::{Action, MaintenanceDecision, RequestChange, RequestLane};
use crate::config::Config;
use crate::observed::PodLocation;
use crate::requests::failures::{RequestFailures, targets_another_pod};
use crate::requests::returns::PodReturns;
use crate::world::WorldView;

/// Decides about the requests of all pods.
pub(crate) fn decide(
    view: &WorldView<'_>,
    failures: &mut RequestFailures,
    returns: &PodReturns,
    decision: &mut MaintenanceDecision,
) {
    ask(view, failures, returns, decision);
    withdraw(view, failures, decision);
}

fn ask(
    view: &WorldView<'_>,
    failures: &mut RequestFailures,
    returns: &PodReturns,
    decision: &mut MaintenanceDecision,
) {
    let off = view.counted.iter().filter(|(node, _)| view.may_ask_on(node));
    let waits = |pod: &Pod| view.stays(&pod.uid) || pod.is_undecided();
    let asked = |pod: &Pod| view.planned.targeted.contains(pod.uid.as_str()) && !waits(pod);
    let mut names = MaintenanceNames::new(view);
    for pod in off.flat_map(|(_, pods)| pods).filter(|pod| asked(pod)) {
        if let Some(until) = returns.hold_back(pod, view.now) {
            decision.wake_at(until);
            continue;
        }
        let request = view.world.request(pod).map(|r| &**r);
        let failure = failures.of(pod).filter(|failure| failure.holds_back(pod, request, view.now));
        // The status that shows the turns wakes us earlier.
        let awaited = || failures.turns.awaited_until(pod, view.now).filter(|_| request.is_none());
        if let Some(until) = failure.map(|failure| failure.again).or_else(awaited) {
            decision.wake_at(until);
            continue;
        }
        let Some(change) = change_for(pod, request, failures, &mut names) else { continue };
        if let RequestChange::Ask { request: Some(request), .. } = &change {
            failures.ask(request);
        }
        let lane = lane(view, Some(&pod.node_name), &pod.namespace);
        decision.add(action(&pod.namespace, &pod.uid, change, lane));
    }
}

/// Returns the change that makes the pod be asked to leave; none if it is asked already, or if its old
/// request is being deleted.
fn change_for(
    pod: &Pod,
    request: Option<&EvictionRequest>,
    failures: &RequestFailures,
    names: &mut MaintenanceNames<'_, '_>,
) -> Option<RequestChange> {
    let asked_again = failures.asked_again(pod, request);
    let mut ask = |request| RequestChange::Ask {
        pod: pod.name.clone(),
        request,
        maintenances: names.of(pod),
        asked_again,
    };
    let Some(request) = request else { return Some(ask(None)) };
    // Its deletion wakes us.
    if request.is_being_deleted() {
        return None;
    }
    if request.is_finished() || targets_another_pod(request, pod) {
        return Some(RequestChange::Replace { request: request.metadata.uid.clone() });
    }
    let joins = !request.has_requester(REQUESTER);
    joins.then(|| ask(Some(request.metadata.uid.clone())))
}

fn withdraw(view: &WorldView<'_>, failures: &mut RequestFailures, decision: &mut MaintenanceDecision) {
    let mut withdrawn = Vec::new();
    for request in view.world.requests.values().filter(|r| is_ours(r, failures)) {
        let Some(target) = request.spec.target.pod.as_ref().filter(|_| is_over(view, request)) else {
            continue;
        };
        if let Some(until) = kept(view, request) {
            decision.wake_at(until);
            continue;
        }
        withdrawn.push(request.metadata.uid.as_str());
        let meta = &request.metadata;
        let change = leave(request, &target.name);
        let node = view.world.located.get(&meta.name).map(|located| located.node.as_str());
        decision.add(action(&meta.namespace, &meta.name, change, lane(view, node, &meta.namespace)));
    }
    withdrawn.into_iter().for_each(|request| failures.withdraw(request));
}

/// Returns the change by which we leave a request: it goes where it is Evicted and ours is the only requester.
fn leave(request: &EvictionRequest, pod: &str) -> RequestChange {
    let meta = &request.metadata;
    let is_ours_alone = request.spec.requesters.iter().all(|requester| requester.name == REQUESTER);
    if request.is_evicted() && is_ours_alone {
        return RequestChange::Delete {
            request: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
        };
    }
    RequestChange::Withdraw { pod: pod.to_owned(), request: meta.uid.clone() }
}

/// Whether a request has our requester, and we put it there.
fn is_ours(request: &EvictionRequest, failures: &RequestFailures) -> bool {
    request.has_requester(REQUESTER) && !failures.has_left(&request.metadata.uid)
}

/// Whether our part in a request is over: it is Evicted, no maintenance drains pods of this type on the pod's
/// node any more, or the pod is one of Drydock's that must stay. While the pod is gone and the request says
/// nothing of it yet, it is about to be Evicted.
fn is_over(view: &WorldView<'_>, request: &EvictionRequest) -> bool {
    let uid = &request.metadata.name;
    match view.world.located.get(uid) {
        Some(PodLocation { node, pod_type }) => {
            let is_draining = view.last_type_on(node).is_some_and(|last| *pod_type <= last);
            request.is_evicted() || !is_draining || view.stays(uid)
        }
        None => request.is_finished(),
    }
}

/// Whether a request that we made for a pod on this node before the end of a maintenance is still open.
/// Others may write our requester's name: a request that they make with it later does not hold up the end,
/// nor does one that is over and is kept for the pod's owner.
pub(crate) fn is_open_on(
    view: &WorldView<'_>,
    failures: &RequestFailures,
    node: &str,
    maintenance: &NodeMaintenance,
) -> bool {
    let pods = view.world.pods.get(node).into_iter().flatten();
    let mut requests = pods.filter_map(|pod| view.world.request(pod));
    let is_earlier =
        |request: &EvictionRequest| is_before_end(request.metadata.creation_timestamp, maintenance);
    requests.any(|request| is_earlier(request) && is_ours(request, failures) && kept(view, request).is_none())
}

/// Until when a request that is over is kept for the pod's owner; none if it need not be kept (any longer).
fn kept(view: &WorldView<'_>, request: &EvictionRequest) -> Option<Timestamp> {
    let Config { request_retention, .. } = view.config;
    let until = kept_until(request, *request_retention, view.config.first_report_within());
    until.filter(|until| *until > view.now)
}

/// Whether a request that was made at `made` may belong to this maintenance: it was not made after the maintenance
/// had ended.
pub(crate) fn is_before_end(made: Option<Timestamp>, maintenance: &NodeMaintenance) -> bool {
    match (made, maintenance.status.started(NodeMaintenanceStage::Complete)) {
        (Some(made), Some(end)) => made <= end,
        _ => true,
    }
}

fn action(namespace: &str, uid: &str, change: RequestChange, lane: RequestLane) -> Action {
    Action::Request { namespace: namespace.to_owned(), pod: uid.to_owned(), change, lane }
}

/// The lane of a write: the maintenance that was created first of those that drain the pod's node, or else
/// the namespace.
fn lane(view: &WorldView<'_>, node: Option<&str>, namespace: &str) -> RequestLane {
    let drains = |node| view.drains_of(node).next().map(|m| (m, node));
    let (maintenance, within) = match node.and_then(drains) {
        Some((maintenance, node)) => (maintenance.metadata.name.clone(), node),
        None => (String::new(), namespace),
    };
    RequestLane { maintenance, within: within.to_owned() }
}

/// The value of the maintenances annotation, by node and pod type for which it was needed.
pub(super) struct MaintenanceNames<'v, 'a> {
    view: &'v WorldView<'a>,
    known: HashMap<(String, PodType), Arc<str>>,
}

impl<'v, 'a> MaintenanceNames<'v, 'a> {
    pub(super) fn new(view: &'v WorldView<'a>) -> Self {
        Self { view, known: HashMap::new() }
    }

    /// Names the oldest maintenances that drain pods of this pod's type on its node.
    pub(super) fn of(&mut self, pod: &Pod) -> Arc<str> {
        let (view, pod_type) = (self.view, pod.pod_type());
        let known = self.known.entry((pod.node_name.clone(), pod_type));
        known.or_insert_with(|| value(view, &pod.node_name, pod_type).into()).clone()
    }
}

fn value(view: &WorldView<'_>, node: &str, pod_type: PodType) -> String {
    let drains = view.drains_of_type(node, pod_type).take(MAX_MAINTENANCES);
    let named = drains.map(|m| MaintenanceReference::new(&m.metadata.name, &m.spec.reason));
    encode(&named.collect::<Vec<_>>())
}
