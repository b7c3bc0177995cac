//! Who intercepts the eviction of a pod: the pod's own list, then the defaults.
//!
//! Pure: the controller gives what it read of the pod, and gets the targets and what to warn of.

use std::collections::{BTreeMap, BTreeSet};

use super::interceptor_annotations;
use crate::names::is_fully_qualified_domain_name;

/// Calls the eviction API; always the last.
pub const IMPERATIVE_EVICTION: &str = "imperative-eviction.k8s.io";
/// Deletes DaemonSet pods once the node's drain targets cover them.
pub const DAEMON_SET: &str = "daemonset.apps.k8s.io";
/// Moves static pods aside once the node's drain targets cover them.
pub const KUBELET: &str = "kubelet.k8s.io";
/// Most interceptors that a pod may name.
pub const MAX_POD_INTERCEPTORS: usize = 15;
/// Most that a request has: the pod's, one of [`DAEMON_SET`] and [`KUBELET`], and [`IMPERATIVE_EVICTION`].
pub const MAX_TARGET_INTERCEPTORS: usize = MAX_POD_INTERCEPTORS + 2;

/// The interceptors that are added to a pod's own, each for the pods that it is for. They are Drydock's, or the node agent's.
const DEFAULT_INTERCEPTORS: [&str; 3] = [IMPERATIVE_EVICTION, DAEMON_SET, KUBELET];

/// Names under k8s.io that may intercept, unless configured.
pub const BUILT_IN: &[&str] = &[
    IMPERATIVE_EVICTION,
    DAEMON_SET,
    KUBELET,
    "cronjob.batch.k8s.io",
    "deployment.apps.k8s.io",
    "horizontalpodautoscaler.autoscaling.k8s.io",
    "job.batch.k8s.io",
    "replicaset.apps.k8s.io",
    "replicationcontroller.k8s.io",
    "statefulset.apps.k8s.io",
];

/// The names under k8s.io that may intercept; every other name is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedNames(BTreeSet<String>);

impl Default for AllowedNames {
    fn default() -> Self {
        Self(BUILT_IN.iter().map(|n| (*n).to_owned()).collect())
    }
}

impl AllowedNames {
    /// The built-in names and some more.
    #[must_use]
    pub fn with(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.0.extend(more);
        self
    }

    /// Whether an interceptor may have this name.
    pub fn allows(&self, name: &str) -> bool {
        !is_reserved(name) || self.0.contains(name)
    }
}

/// Reads a name that is to be allowed, from a flag: other names than those under k8s.io are free already.
pub fn parse_reserved_name(name: &str) -> Result<String, String> {
    if !is_reserved(name) || !is_fully_qualified_domain_name(name) {
        return Err("must be a domain name under k8s.io; all other names may intercept already".to_owned());
    }
    Ok(name.to_owned())
}

/// What the list of interceptors depends on.
#[derive(Clone, Debug, Default)]
pub struct PodFacts<'a> {
    /// Names in `.spec.evictionInterceptors`, in order.
    pub eviction_interceptors: Vec<&'a str>,
    /// Names and priorities in `.spec.evictionResponders`.
    pub eviction_responders: Vec<(&'a str, i64)>,
    /// The pod's annotations.
    pub annotations: Option<&'a BTreeMap<String, String>>,
    /// Whether the pod's controller is a DaemonSet.
    pub of_daemon_set: bool,
    /// Whether it mirrors a static pod.
    pub mirror: bool,
}

/// Who intercepts, and what was ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// In the order of their turns; the last is [`IMPERATIVE_EVICTION`].
    pub targets: Vec<String>,
    /// One for each entry that was ignored, for an event on the request.
    pub warnings: Vec<String>,
}

/// The interceptors of a pod.
pub fn select(pod: &PodFacts<'_>, allowed: &AllowedNames) -> Selection {
    let mut warnings = Vec::new();
    let mut targets: Vec<String> = Vec::new();
    let is_of_spec = !pod.eviction_interceptors.is_empty() || !pod.eviction_responders.is_empty();
    let ignored = |name: &str, why: &str| match is_of_spec {
        true => format!("interceptor {name:?} is ignored: {why}"),
        false => interceptor_annotations::ignored(name, why),
    };
    for name in named_by(pod, &mut warnings) {
        if let Some(why) = refusal(name, &targets, allowed) {
            warnings.push(ignored(name, &why));
        } else if name != IMPERATIVE_EVICTION {
            targets.push(name.to_owned());
        }
    }
    for beyond in targets.drain(targets.len().min(MAX_POD_INTERCEPTORS)..) {
        let why = format!(
            "a pod may have at most {MAX_POD_INTERCEPTORS} interceptors, and those of the lowest priority are beyond"
        );
        warnings.push(ignored(&beyond, &why));
    }
    let default = pod.of_daemon_set.then_some(DAEMON_SET).or(pod.mirror.then_some(KUBELET));
    targets.extend(default.filter(|d| !targets.iter().any(|t| t == d)).map(str::to_owned));
    targets.push(IMPERATIVE_EVICTION.to_owned());
    Selection { targets, warnings }
}

/// The names in the first source that is present, in order.
fn named_by<'a>(pod: &PodFacts<'a>, warnings: &mut Vec<String>) -> Vec<&'a str> {
    if !pod.eviction_interceptors.is_empty() {
        return pod.eviction_interceptors.clone();
    }
    if !pod.eviction_responders.is_empty() {
        let mut responders = pod.eviction_responders.clone();
        responders.sort_by_key(|(_, priority)| std::cmp::Reverse(*priority));
        return responders.into_iter().map(|(name, _)| name).collect();
    }
    pod.annotations
        .map(|annotations| interceptor_annotations::named_by(annotations, warnings))
        .unwrap_or_default()
}

fn refusal(name: &str, before: &[String], allowed: &AllowedNames) -> Option<String> {
    if !is_fully_qualified_domain_name(name) {
        return Some(format!("{name} is not a domain name of two or more labels"));
    }
    if !allowed.allows(name) {
        return Some("names under k8s.io are reserved".to_owned());
    }
    before.iter().any(|b| b == name).then(|| "it is named twice".to_owned())
}

/// Whether an interceptor is one of those that are added to a pod's own: Drydock's, or the node agent's. What it says of itself is
/// believed, and the pod's owner did not choose it.
pub fn is_default(name: &str) -> bool {
    DEFAULT_INTERCEPTORS.contains(&name)
}

/// Whether the name is one under k8s.io: the cluster's, and no tenant's.
pub fn is_reserved(name: &str) -> bool {
    name == "k8s.io" || name.ends_with(".k8s.io")
}

#[cfg(test)]
#[path = "interceptors_tests.rs"]
mod tests;
