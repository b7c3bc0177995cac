//! The figures of a drain, from the audit logs. Pure.

use std::collections::{BTreeMap, BTreeSet};

use drydock_testkit::host::audit::LoggedRequest;
use jiff::Timestamp;
use serde::Serialize;

use super::workload::NAMESPACE;

/// The figures of one drain.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DrainFigures {
    /// Drained pods whose eviction or deletion the host accepted.
    pub deletions: usize,
    /// Of them a second, between the 5th and the 95th percentile.
    pub per_second: f64,
    /// Of them those whose kubelet deleted them more than 10 s later.
    pub slow: usize,
    /// Reports of imperative-eviction that neither a refusal nor the passing of time explains.
    pub unexplained_reports: usize,
    /// Seconds from the creation of the maintenance to the first of them; nothing without a maintenance.
    pub first_deletion: Option<f64>,
    /// Writes of our programs, without reviews: `patch evictionrequests/status` and so on, and how many.
    pub writes: AuditCounts,
    /// SubjectAccessReviews and TokenReviews of our programs.
    pub reviews: usize,
    /// Events of our programs about the drained pods or their requests. Those about nodes and maintenances
    /// are in another namespace.
    pub events_of_pods: usize,
    /// Most writes of our programs to one Node until it was drained.
    pub most_writes_to_a_node: usize,
    /// Evictions, and writes of our programs, that were answered with 409.
    pub conflicts: AuditCounts,
    /// The same with 429.
    pub too_many: AuditCounts,
}

/// How many, by verb and resource.
pub type AuditCounts = BTreeMap<String, usize>;

/// The service accounts of our programs.
const ACCOUNTS: &str = "system:serviceaccount:drydock-system:";

const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

impl DrainFigures {
    /// Returns the figures of the drain of these pods, by the requests that the host and our API server received since
    /// `from`. The nodes were drained at `ended`.
    pub fn read(
        log: &[LoggedRequest],
        drained: &BTreeSet<String>,
        from: Timestamp,
        ended: Timestamp,
    ) -> DrainFigures {
        let log: Vec<&LoggedRequest> =
            log.iter().filter(|r| r.received.is_some_and(|at| at >= from)).collect();
        let made_to_go = made_to_go(&log, drained);
        let slow = slow(&log, &made_to_go);
        let unexplained_reports = unexplained_reports(&log, &made_to_go);
        let mut deletions: Vec<Timestamp> = made_to_go.into_values().collect();
        deletions.sort_unstable();
        let ours = || log.iter().copied().filter(|r| is_ours(r) && is_write(r));
        let evictions = log.iter().copied().filter(|r| !is_ours(r) && r.is_about("pods/eviction"));
        let asked: Vec<&LoggedRequest> = ours().chain(evictions).collect();
        let refused = |code| count(asked.iter().copied().filter(|r| r.response_status.code == code));
        DrainFigures {
            deletions: deletions.len(),
            per_second: per_second(&deletions),
            slow,
            unexplained_reports,
            first_deletion: first_deletion(&log, &deletions),
            writes: count(ours().filter(|r| r.succeeded() && !is_review(r))),
            reviews: ours().filter(|r| is_review(r)).count(),
            events_of_pods: ours()
                .filter(|r| r.is_about("events") && r.object_ref.namespace == NAMESPACE)
                .count(),
            most_writes_to_a_node: most_writes_to_a_node(
                ours().filter(|r| r.received.is_some_and(|at| at <= ended)),
            ),
            conflicts: refused(409),
            too_many: refused(429),
        }
    }
}

/// When each of the drained pods was first made to go. Its kubelet's own delete comes later.
fn made_to_go<'l>(log: &[&'l LoggedRequest], drained: &BTreeSet<String>) -> BTreeMap<&'l str, Timestamp> {
    let mut first = BTreeMap::<&str, Timestamp>::new();
    let goes = |r: &&LoggedRequest| r.is_about("pods/eviction") || r.is_about("pods") && r.verb == "delete";
    for request in
        log.iter().copied().filter(goes).filter(|r| r.succeeded() && drained.contains(&r.object_ref.name))
    {
        let Some(at) = request.answered else { continue };
        let earliest = first.entry(&request.object_ref.name).or_insert(at);
        *earliest = at.min(*earliest);
    }
    first
}

/// How many of the pods were there for more than 10 s after they were made to go.
fn slow(log: &[&LoggedRequest], made_to_go: &BTreeMap<&str, Timestamp>) -> usize {
    let mut gone = BTreeMap::<&str, Timestamp>::new();
    for request in log.iter().filter(|r| r.is_about("pods") && r.verb == "delete" && r.succeeded()) {
        gone.extend(request.answered.map(|at| (&*request.object_ref.name, at)));
    }
    let is_slow = |(pod, went): &(&&str, &Timestamp)| {
        gone.get(**pod).is_some_and(|at| seconds_between(**went, *at) > 10.0)
    };
    made_to_go.iter().filter(is_slow).count()
}

/// The field manager of the reports of imperative-eviction, as their query has it.
const REPORTER: &str = "fieldManager=imperative-eviction.k8s.io";
/// A report that comes so long after the last one, or after its pod was made to go, is made by time: that a pod still leaves
/// is reported after 10 s, of which a second may be cut off.
const BY_TIME: f64 = 8.0;

/// How many reports about the pods were made without a reason: the first needs a refusal before it, and each may be made by
/// time. A drain that takes longer has more of those.
fn unexplained_reports(log: &[&LoggedRequest], made_to_go: &BTreeMap<&str, Timestamp>) -> usize {
    let (mut refused, mut went) = (BTreeMap::<&str, Timestamp>::new(), BTreeMap::<&str, Timestamp>::new());
    for eviction in log.iter().filter(|r| r.is_about("pods/eviction")) {
        let uid = eviction.request_object["deleteOptions"]["preconditions"]["uid"].as_str();
        let Some((uid, at)) = uid.zip(eviction.answered) else { continue };
        if eviction.response_status.code == 429 {
            let first = refused.entry(uid).or_insert(at);
            *first = at.min(*first);
        }
        went.extend(made_to_go.get(&*eviction.object_ref.name).map(|at| (uid, *at)));
    }
    let mut reports = BTreeMap::<&str, Vec<Timestamp>>::new();
    for report in log.iter().filter(|r| is_report(r) && r.succeeded()) {
        reports.entry(&report.object_ref.name).or_default().extend(report.received);
    }
    let is_late =
        |since: Option<&Timestamp>, at| since.is_some_and(|since| seconds_between(*since, at) >= BY_TIME);
    let unexplained = |(uid, times): (&&str, &mut Vec<Timestamp>)| {
        times.sort_unstable();
        let is_explained = |index: usize| {
            let (at, before) = (times[index], index.checked_sub(1).map(|before| &times[before]));
            let is_first_of_refused = before.is_none() && refused.get(uid).is_some_and(|first| *first <= at);
            is_first_of_refused || is_late(before, at) || is_late(went.get(uid), at)
        };
        (0..times.len()).filter(|index| !is_explained(*index)).count()
    };
    reports.iter_mut().map(unexplained).sum()
}

fn is_report(request: &LoggedRequest) -> bool {
    request.is_about("evictionrequests/status") && request.uri.contains(REPORTER)
}

/// Between the 5th and the 95th percentile: neither the start nor the last stragglers set the rate.
fn per_second(times: &[Timestamp]) -> f64 {
    let Some(last) = times.len().checked_sub(1) else { return 0.0 };
    let (low, high) = (last * 5 / 100, last * 95 / 100);
    let seconds = seconds_between(times[low], times[high]);
    if seconds > 0.0 { (high - low) as f64 / seconds } else { 0.0 }
}

fn first_deletion(log: &[&LoggedRequest], deletions: &[Timestamp]) -> Option<f64> {
    let creates = |r: &&&LoggedRequest| r.is_about("nodemaintenances") && r.verb == "create" && r.succeeded();
    let created = log.iter().find(creates)?.received?;
    Some(seconds_between(created, *deletions.first()?))
}

fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

fn most_writes_to_a_node<'l>(writes: impl Iterator<Item = &'l LoggedRequest>) -> usize {
    let mut nodes = BTreeMap::<&str, usize>::new();
    for request in writes.filter(|r| r.object_ref.resource == "nodes" && r.succeeded()) {
        *nodes.entry(&request.object_ref.name).or_default() += 1;
    }
    nodes.into_values().max().unwrap_or_default()
}

fn count<'l>(requests: impl Iterator<Item = &'l LoggedRequest>) -> AuditCounts {
    let mut counts = AuditCounts::new();
    for request in requests {
        *counts.entry(what(request)).or_default() += 1;
    }
    counts
}

fn what(request: &LoggedRequest) -> String {
    let about = &request.object_ref;
    let slash = if about.subresource.is_empty() { "" } else { "/" };
    let reports = if is_report(request) { " (reports)" } else { "" };
    format!("{} {}{slash}{}{reports}", request.verb, about.resource, about.subresource)
}

fn is_ours(request: &LoggedRequest) -> bool {
    request.user.username.starts_with(ACCOUNTS)
}

fn is_write(request: &LoggedRequest) -> bool {
    WRITES.contains(&request.verb.as_str())
}

fn is_review(request: &LoggedRequest) -> bool {
    ["subjectaccessreviews", "tokenreviews"].contains(&request.object_ref.resource.as_str())
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
