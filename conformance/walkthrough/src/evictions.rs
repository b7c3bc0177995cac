//! Judges whether each pod was evicted once, from the right node, and within its budget.

use std::collections::BTreeMap;

use drydock_api::text::{counted, times};
use drydock_testkit::finding::Finding;
use drydock_testkit::host::audit::LoggedRequest;

use super::history::Departures;
use super::interceptor::{self, AcceptedReport};
use super::maintenance::SeenStatus;

/// The application whose pods have an interceptor.
pub const INTERCEPTED: &str = "cache";

/// Each pod has at most one accepted eviction, and only pods on the maintained nodes have one. `before` has the
/// nodes of pods when the drain began, because a killed server loses the last lines of its log.
pub fn once_and_there(
    nodes: &[String],
    before: &BTreeMap<String, String>,
    departures: &Departures,
    accepted: &BTreeMap<String, usize>,
) -> Vec<Finding> {
    let name = |uid: &String| departures.get(uid).map_or(uid, |departure| &departure.pod).clone();
    let twice: Vec<_> = accepted.iter().filter(|(_, times)| **times > 1).map(|(uid, _)| name(uid)).collect();
    let node =
        |uid: &String| departures.get(uid).map(|departure| &departure.node).or_else(|| before.get(uid));
    let there = |uid: &String| node(uid).is_some_and(|node| nodes.contains(node));
    let elsewhere: Vec<_> = accepted.keys().filter(|uid| !there(uid)).map(name).collect();
    let evicted = counted(accepted.len() as u64, "pod", "pods");
    vec![
        if accepted.is_empty() {
            Finding::new(false, "no pod was evicted")
        } else {
            Finding::of_nothing(
                &twice,
                &format!("the eviction API evicted {evicted}, each once"),
                "pods were evicted more than once",
            )
        },
        Finding::of_nothing(&elsewhere, "no pod of another node was evicted", "evicted from other nodes"),
    ]
}

/// A budget that refused nothing was not tested: the host says so, or the status did.
pub fn felt(budget: &str, departures: &Departures, seen: &SeenStatus) -> Finding {
    let pods = departures.values().filter(|departure| departure.app == budget);
    let by_host: usize = pods.map(|departure| departure.refused).sum();
    let explained = seen.blockers.get("PodDisruptionBudget").into_iter().flatten();
    let by_us = explained.filter(|message| message.contains(budget)).count();
    let refused = counted(by_host as u64, "eviction", "evictions");
    let what = format!("budget {budget} refused {refused}; the status named it {}", times(by_us as u64));
    Finding::new(by_host + by_us > 0, what)
}

/// How many SubjectAccessReviews the host was asked while pods were evicted, and how many these are for each pod.
pub fn cost_in_reviews(log: &[LoggedRequest]) -> String {
    let answered = |what| log.iter().filter(|request| request.is_about(what) && request.succeeded()).count();
    let (reviews, evicted) = (answered("subjectaccessreviews"), answered("pods/eviction"));
    let each = reviews as f64 / evicted.max(1) as f64;
    format!("The host was asked {reviews} SubjectAccessReviews for {evicted} evictions: {each:.1} for each.")
}

/// Pods with an interceptor are deleted by it alone, and its reports were accepted.
pub fn intercepted(
    nodes: &[String],
    departures: &Departures,
    reports: &BTreeMap<String, AcceptedReport>,
) -> Vec<Finding> {
    let theirs = departures.iter().filter(|(_, d)| d.app == INTERCEPTED && nodes.contains(&d.node));
    let theirs: Vec<_> = theirs.collect();
    let bypassed = theirs.iter().filter(|(uid, departure)| {
        let reported = reports.get(*uid).is_some_and(|r| r.over && !r.heartbeats.is_empty());
        let by_it_alone = departure.evicted == 0 && departure.deleted_by.iter().eq([interceptor::USER]);
        !(reported && by_it_alone)
    });
    let bypassed: Vec<_> = bypassed.map(|(_, departure)| &departure.pod).collect();
    let heartbeats: usize = reports.values().map(|report| report.heartbeats.len()).sum();
    let most = reports.values().map(|report| report.heartbeats.len()).max().unwrap_or_default();
    let pods = counted(theirs.len() as u64, "pod", "pods");
    vec![
        if theirs.is_empty() {
            Finding::new(false, "no pod with an interceptor left")
        } else {
            let good = format!("{pods} of {INTERCEPTED} left by the interceptor's hand alone");
            Finding::of_nothing(&bypassed, &good, "pods left past their interceptor")
        },
        Finding::new(
            most > 1,
            format!("{heartbeats} heartbeats of the interceptor were accepted, up to {most} for one pod"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use drydock_api::node_maintenance::PodType;

    use super::super::history::Departure;
    use super::*;

    fn pod(app: &str, node: &str, evicted: usize, deleted_by: &[&str]) -> Departure {
        Departure {
            pod: format!("{app}-1"),
            app: app.into(),
            node: node.into(),
            kind: PodType::Default,
            priority: 0,
            bound: None,
            asked: None,
            gone: None,
            evicted,
            refused: 0,
            deleted_by: deleted_by.iter().map(|user| (*user).to_owned()).collect::<BTreeSet<_>>(),
        }
    }

    fn departures(list: impl IntoIterator<Item = Departure>) -> Departures {
        list.into_iter().enumerate().map(|(i, departure)| (format!("u{i}"), departure)).collect()
    }

    fn bad(findings: Vec<Finding>) -> Vec<String> {
        findings.into_iter().filter(|finding| !finding.good).map(|finding| finding.what).collect()
    }

    #[test]
    fn injected_evictions_twice_and_elsewhere_are_found() {
        let found = departures([pod("web", "n", 2, &[]), pod("api", "other", 1, &[])]);
        let accepted =
            |times: [usize; 2]| BTreeMap::from([("u0".to_owned(), times[0]), ("u1".to_owned(), times[1])]);
        let both = ["n".to_owned(), "other".to_owned()];
        let before = BTreeMap::from([("u8".to_owned(), "n".to_owned())]);
        let judged = |nodes: &[String], accepted: &BTreeMap<String, usize>| {
            bad(once_and_there(nodes, &before, &found, accepted)).concat()
        };
        assert_eq!(judged(&both, &accepted([1, 1])), "");
        assert!(judged(&both, &accepted([2, 1])).contains("web-1"));
        assert!(judged(&both[..1], &accepted([1, 1])).contains("api-1"));
        let unlogged = |uid: &str| BTreeMap::from([(uid.to_owned(), 1)]);
        assert_eq!(judged(&both, &unlogged("u8")), "");
        assert!(judged(&both, &unlogged("u9")).contains("u9"));
    }

    #[test]
    fn a_budget_that_refused_nothing_was_not_felt() {
        let mut web = pod("web", "n", 1, &[]);
        assert!(!felt("web", &departures([web.clone()]), &SeenStatus::default()).good);
        web.refused = 1;
        assert!(felt("web", &departures([web]), &SeenStatus::default()).good);
    }

    #[test]
    fn a_pod_that_was_taken_past_its_interceptor_is_found() {
        let report = |beats: i64, over| AcceptedReport {
            heartbeats: (0..beats).filter_map(|s| jiff::Timestamp::from_second(s).ok()).collect(),
            over,
        };
        let judged = |departure: Departure, report: AcceptedReport| {
            let reports = BTreeMap::from([("u0".to_owned(), report)]);
            bad(intercepted(&["n".into()], &departures([departure]), &reports)).concat()
        };
        let good = || pod(INTERCEPTED, "n", 0, &[interceptor::USER]);
        assert_eq!(judged(good(), report(2, true)), "");
        assert!(judged(good(), report(2, false)).contains("cache-1"));
        assert!(judged(good(), report(1, true)).contains("up to 1 for one pod"));
        assert!(judged(pod(INTERCEPTED, "n", 1, &[interceptor::USER]), report(2, true)).contains("cache-1"));
        assert!(judged(pod(INTERCEPTED, "n", 0, &["admin"]), report(2, true)).contains("cache-1"));
        assert!(judged(pod("web", "n", 0, &[]), report(2, true)).contains("no pod with an interceptor left"));
    }
}
