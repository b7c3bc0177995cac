//! Where two outcomes differ, in words.

use std::collections::BTreeSet;

use drydock_api::node_maintenance::DrainPlanEntry;

use super::targets::{covers, requirements};
use super::{MaintenanceOutcome, Outcome};

/// The differences between two outcomes of the same planning, one line each; none if they agree. A line that
/// begins with 'form:' is about something that the page leaves open: entries that cover the same in another
/// order or number, or which one of several maintenances a fast-forward names.
pub fn compare(a: &Outcome, b: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    if a.targeted != b.targeted {
        let differs = |i: &usize| a.targeted.get(*i) != b.targeted.get(*i);
        let pods: Vec<usize> = (0..a.targeted.len().max(b.targeted.len())).filter(differs).collect();
        found.push(format!("targeted pods differ at {pods:?}: {:?} and {:?}", a.targeted, b.targeted));
    }
    if a.maintenances.len() != b.maintenances.len() {
        found.push("another number of maintenances".to_owned());
    }
    for (i, (x, y)) in a.maintenances.iter().zip(&b.maintenances).enumerate() {
        found.extend(maintenance(x, y).into_iter().map(|d| format!("maintenance {i}: {d}")));
    }
    let told = |o: &Outcome| -> BTreeSet<_> {
        o.fast_forwards.iter().map(|f| (f.maintenance, f.node.clone())).collect()
    };
    let named = |o: &Outcome| -> BTreeSet<_> { o.fast_forwards.iter().cloned().collect() };
    if told(a) != told(b) {
        found.push(format!("fast-forwards: {:?} and {:?}", a.fast_forwards, b.fast_forwards));
    } else if named(a) != named(b) {
        found.push(format!("form: fast-forwards name {:?} and {:?}", a.fast_forwards, b.fast_forwards));
    }
    found.sort_by_key(|line| line.contains("form:"));
    found
}

fn maintenance(a: &MaintenanceOutcome, b: &MaintenanceOutcome) -> Vec<String> {
    let mut found = Vec::new();
    if a.cursor != b.cursor {
        found.push(format!("cursor {} and {}", a.cursor, b.cursor));
    }
    if a.nodes.keys().ne(b.nodes.keys()) {
        found.push(format!("nodes {:?} and {:?}", a.nodes.keys(), b.nodes.keys()));
    }
    for ((name, x), y) in a.nodes.iter().zip(b.nodes.values()) {
        if x.drain_message != y.drain_message {
            found.push(format!("node {name}: '{}' and '{}'", x.drain_message, y.drain_message));
        }
        let both = || format!("{} and {}", list(&x.drain_targets), list(&y.drain_targets));
        if !within(&x.drain_targets, &y.drain_targets) || !within(&y.drain_targets, &x.drain_targets) {
            found.push(format!("node {name}: targets {}", both()));
        } else if list(&x.drain_targets) != list(&y.drain_targets) {
            found.push(format!("node {name}: form: targets {}", both()));
        }
    }
    found
}

/// Whether every entry of one list is covered by one of the other.
pub fn within(narrow: &[DrainPlanEntry], wide: &[DrainPlanEntry]) -> bool {
    narrow.iter().all(|n| wide.iter().any(|w| covers(w, n)))
}

/// Entries for people, with normalised selectors.
pub fn list(entries: &[DrainPlanEntry]) -> String {
    let words = |e: &DrainPlanEntry| {
        let all: Vec<String> =
            requirements(e).iter().map(|r| format!("{} {} {:?}", r.key, r.operator, r.values)).collect();
        format!("{}<={}{{{}}}", e.pod_type.as_str(), e.pod_priority, all.join(", "))
    };
    format!("[{}]", entries.iter().map(words).collect::<Vec<_>>().join("; "))
}
