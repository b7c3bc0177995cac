//! Pods that stay in the turn of an interceptor: it is refused, silent or late, or nothing explains why the
//! pod is there.

use drydock_api::eviction_request::believed_block::believed_block;
use drydock_api::eviction_request::interceptors::{DAEMON_SET, IMPERATIVE_EVICTION, is_default};
use drydock_api::eviction_request::maintenances::{clause_of, without_clause};
use drydock_api::eviction_request::retention::agent_is_missing;
use drydock_api::eviction_request::{EvictionRequest, InterceptorStatus, transitions};
use drydock_api::node_maintenance::PodType;
use drydock_api::reasons::{
    ADMISSION_WEBHOOK, DAEMON_SET_RETURNS, INTERCEPTOR, NO_NODE_AGENT, NODE_UPDATE_REFUSED, OTHER,
    POD_DISRUPTION_BUDGET,
};
use drydock_api::time::format_seconds;
use drydock_runtime::Pod;
use drydock_runtime::refusal::without_retries;
use jiff::{SignedDuration, Timestamp};

use super::cause::{BlockCause, ForOwner};
use crate::actions::MaintenanceDecision;
use crate::world::WorldView;

/// The ClusterRole that allows the command which ends the turn of an interceptor
/// (deploy/base/rbac-users.yaml).
const SKIP_ROLE: &str = "drydock:skip-interceptors";
/// How long a pod that nothing else keeps may be there before it is shown as blocked, whatever its interceptors report.
const LONG_RUNNING_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// The same for a pod without an active interceptor.
const UNEXPLAINED_AFTER: SignedDuration = SignedDuration::from_mins(5);
/// What is said of a pod about whose DaemonSet the host has not answered.
const UNDECIDED: &str =
    "The host has not answered whether the DaemonSet exists that the pod names as its controller";

/// Returns what the active interceptor says keeps it from evicting the pod. Only our own interceptors are shown without
/// quotes.
pub(super) fn why_refused(request: &EvictionRequest) -> Option<BlockCause> {
    let active = request.active_interceptor_status()?;
    let block = believed_block(request)?;
    if block.reason == INTERCEPTOR {
        let says = format!("{} says:", active.name);
        let why = BlockCause::new(INTERCEPTOR, says).quoting(&active.message).of(&active.name);
        return Some(why.for_owner(ForOwner::SaysBlocked));
    }
    let known = [POD_DISRUPTION_BUDGET, ADMISSION_WEBHOOK, NODE_UPDATE_REFUSED, DAEMON_SET_RETURNS];
    let reason = known.into_iter().find(|known| *known == block.reason).unwrap_or(OTHER);
    // Budgets and DaemonSets of two namespaces may have one name.
    let is_namespaced = [POD_DISRUPTION_BUDGET, DAEMON_SET_RETURNS].contains(&reason);
    let namespace = if is_namespaced { format!("{}/", request.metadata.namespace) } else { String::new() };
    let why = BlockCause::new(reason, said(request, active)).in_state(block.state);
    let is_due = reason != POD_DISRUPTION_BUDGET || is_owner_told(active);
    Some(BlockCause { is_due, ..why }.of(format!("{} {namespace}{}", active.name, block.name)))
}

/// Whether the pod's owner has had an event about what blocks. The interceptor decides that, and publishes
/// none while the budget allows the eviction of other pods.
fn is_owner_told(active: &InterceptorStatus) -> bool {
    match (&active.last_blocked, &active.blocked) {
        (Some(last), Some(blocked)) => (&last.reason, &last.name) == (&blocked.reason, &blocked.name),
        _ => false,
    }
}

/// The message of an interceptor, without the clause about the maintenance, which is this one, and without
/// the number of retries, because each change of the words writes the whole status.
fn said<'r>(request: &EvictionRequest, active: &'r InterceptorStatus) -> &'r str {
    without_retries(without_clause(&clause_of(request), &active.message))
}

/// A static pod whose node has no agent.
pub(super) fn no_agent(view: &WorldView<'_>, pod: &Pod, request: &EvictionRequest) -> Option<BlockCause> {
    request.active_interceptor_status()?;
    let is_missing = || agent_is_missing(request, view.config.first_report_within(), view.now);
    if pod.pod_type() != PodType::Static || !is_missing() {
        return None;
    }
    let message = format!("No node agent on {} responds to the eviction of static pods", pod.node_name);
    Some(BlockCause::new(NO_NODE_AGENT, message).for_owner(ForOwner::NoAgent))
}

/// Returns a cause if the active interceptor reports no progress, or is later than it expected; none while it
/// works.
pub(super) fn why_slow(
    view: &WorldView<'_>,
    request: &EvictionRequest,
    decision: &mut MaintenanceDecision,
) -> Option<BlockCause> {
    let active = request.active_interceptor_status()?;
    let (silent, expected) = (silent_at(view, request, active), active.expected_finish_time);
    let is_over = |at: &Timestamp| *at <= view.now;
    let times = [silent, expected].into_iter().flatten();
    times.filter(|at| !is_over(at)).for_each(|at| decision.wake_at(at));
    if let Some(at) = expected.filter(is_over) {
        return Some(waiting_for(
            request,
            active,
            &format!(", which expected to finish at {}", format_seconds(at)),
        ));
    }
    silent.filter(is_over)?;
    let passed_over = deadline(view, request, active);
    if active.start_time.is_none() && !is_default(&active.name) {
        return Some(never_reported(request, active, passed_over));
    }
    let last =
        last_sign(request, active).map_or_else(String::new, |at| format!(" since {}", format_seconds(at)));
    let then = passed_over.map(|at| format!(" and is passed over at {}", format_seconds(at)));
    Some(waiting_for(request, active, &format!(", which has not reported{last}{}", then.unwrap_or_default())))
}

/// Returns a cause for a pod that nothing else explains, once it has been there for so long that people
/// should look. Its request may be made again and again, or its interceptor may report forever.
pub(super) fn unexplained(
    view: &WorldView<'_>,
    pod: &Pod,
    since: Timestamp,
    decision: &mut MaintenanceDecision,
) -> Option<BlockCause> {
    // Terminating pods are explained when they are late.
    if pod.is_terminating() {
        return None;
    }
    let request = view.world.request(pod);
    let active = request.and_then(|request| request.active_interceptor_status());
    let after = if active.is_some() { LONG_RUNNING_AFTER } else { UNEXPLAINED_AFTER };
    let late = since.checked_add(after).unwrap_or(Timestamp::MAX);
    if view.now < late {
        decision.wake_at(late);
        return None;
    }
    let since = format_seconds(since);
    let what = match (active, request) {
        (Some(active), Some(request)) => {
            return Some(waiting_for(request, active, &format!(" since {since}")));
        }
        _ if pod.is_undecided() => UNDECIDED,
        (_, Some(_)) => "The pod's EvictionRequest has no active interceptor",
        (_, None) => "The pod has no EvictionRequest",
    };
    let message = format!(
        "{what}, although it has been due to leave since {since}; the log of drydock-controller-manager says why"
    );
    Some(BlockCause::new(OTHER, message))
}

/// An interceptor that may not be running at all, with a command that ends its turn.
fn never_reported(
    request: &EvictionRequest,
    active: &InterceptorStatus,
    passed_over: Option<Timestamp>,
) -> BlockCause {
    let (name, meta) = (&active.name, &request.metadata);
    let then = passed_over.map(|at| format!("; it is passed over at {}", format_seconds(at)));
    let message =
        format!("Waiting for interceptor {name}, which has never reported{}", then.unwrap_or_default());
    let role = format!("whoever has the ClusterRole {SKIP_ROLE} may end its turn");
    let command = format!(
        "kubectl patch evictionrequest {} -n {} --subresource=status -p 'status: {{interceptors: [{{name: {name}, \
         completionTime: '$(date -u +%FT%TZ)'}}]}}'",
        meta.name, meta.namespace,
    );
    let why = BlockCause::new(INTERCEPTOR, message).of(name).for_owner(ForOwner::NeverReported);
    why.with_note(role).with_command("To go on now", command)
}

/// Adds to the cause which interceptors were passed over before the active one.
pub(super) fn after_others(request: &EvictionRequest, why: BlockCause) -> BlockCause {
    let names: Vec<&str> = transitions::passed_over(request).filter(|name| !is_default(name)).collect();
    let Some(last) = names.last() else { return why };
    let (who, it) = match names.len() {
        1 => ((*last).to_owned() + " was", "it"),
        all => (format!("{last} and {} more were", all - 1), "they"),
    };
    let because = match transitions::ran_out_of_time(&request.status) {
        true => "the time for interceptors was over".to_owned(),
        false => format!("{it} did not report"),
    };
    why.with_note(format!("{who} passed over before, because {because}"))
}

fn waiting_for(request: &EvictionRequest, active: &InterceptorStatus, how: &str) -> BlockCause {
    let waiting = format!("Waiting for {}{how}:", active.name);
    let why = match said(request, active) {
        "" => BlockCause::new(INTERCEPTOR, waiting + " it has not reported yet"),
        said if is_default(&active.name) => BlockCause::new(INTERCEPTOR, format!("{waiting} {said}")),
        said => BlockCause::new(INTERCEPTOR, waiting).quoting(said),
    };
    why.of(&active.name)
}

/// When an interceptor is shown as silent if it reports nothing more. Ours have more time for their first
/// report: they may have many pods, and report seldom about one that they cannot evict yet.
pub(super) fn silent_at(
    view: &WorldView<'_>,
    request: &EvictionRequest,
    active: &InterceptorStatus,
) -> Option<Timestamp> {
    let is_ours = [IMPERATIVE_EVICTION, DAEMON_SET].contains(&active.name.as_str());
    let has_begun = active.start_time.is_some() || is_ours;
    let after = if has_begun { view.config.silent_after() } else { view.config.first_report_within() };
    Some(last_sign(request, active)?.checked_add(after).unwrap_or(Timestamp::MAX))
}

/// When the interceptor is passed over if it reports nothing more; none for the last one, which has no
/// deadline.
fn deadline(
    view: &WorldView<'_>,
    request: &EvictionRequest,
    active: &InterceptorStatus,
) -> Option<Timestamp> {
    let last = last_sign(request, active).filter(|_| active.name != IMPERATIVE_EVICTION)?;
    let silent = last.checked_add(view.config.heartbeat_deadline).ok()?;
    Some(transitions::interception_ends(&request.status).map_or(silent, |end| end.min(silent)))
}

fn last_sign(request: &EvictionRequest, active: &InterceptorStatus) -> Option<Timestamp> {
    active.heartbeat_time.or(request.status.activation_time)
}
