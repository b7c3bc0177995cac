//! Selects the interceptors of a pod's eviction: those that the pod names, then the default ones.
//!
//! Does no I/O: the controller passes what it read of the pod, and gets the targets and the warnings.

use std::collections::{BTreeMap, BTreeSet};

use super::interceptor_annotations;
use super::validation::is_fully_qualified_domain_name;

/// Calls the eviction API; always the last interceptor.
pub const IMPERATIVE_EVICTION: &str = "imperative-eviction.k8s.io";
/// Deletes pods of DaemonSets once the drain targets of the node cover them.
pub const DAEMON_SET: &str = "daemonset.apps.k8s.io";
/// Moves the manifests of static pods aside once the drain targets of the node cover them.
pub const KUBELET: &str = "kubelet.k8s.io";
/// Gives a Deployment one replica more before its pod is evicted. Under k8s.io, so that the right to report as this
/// interceptor is one on the whole cluster, which no owner of a namespace has.
pub const SURGE: &str = "surge.coordination.k8s.io";
/// Maximum number of interceptors that a pod may name.
pub const MAX_POD_INTERCEPTORS: usize = 15;
/// Maximum number of interceptors of a request: those of the pod, one of [`DAEMON_SET`] and [`KUBELET`], and
/// [`IMPERATIVE_EVICTION`].
pub const MAX_TARGET_INTERCEPTORS: usize = MAX_POD_INTERCEPTORS + 2;

/// The default interceptors, which are added to those of the pod if they apply to it. They belong to Drydock or to
/// its node agent.
const DEFAULT_INTERCEPTORS: [&str; 3] = [IMPERATIVE_EVICTION, DAEMON_SET, KUBELET];

/// Names under k8s.io that interceptors may have by default.
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
    SURGE,
];

/// The names under k8s.io that interceptors may have. All names outside k8s.io are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedNames {
    names: BTreeSet<String>,
    /// The built-in names of which it is known that no program serves them.
    unserved: BTreeSet<&'static str>,
}

impl Default for AllowedNames {
    fn default() -> Self {
        let names = BUILT_IN.iter().map(|n| (*n).to_owned()).collect();
        Self { names, unserved: BTreeSet::new() }
    }
}

impl AllowedNames {
    /// Adds names to these. Somebody serves each of them: why else would an admin add it?
    #[must_use]
    pub fn with(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.names.extend(more);
        self
    }

    /// Says which of the built-in names programs of this installation serve, beside [`IMPERATIVE_EVICTION`]: a pod that
    /// names another of them does not wait for it. Of names outside of the list nothing is known.
    #[must_use]
    pub fn served_by<'a>(mut self, served: impl IntoIterator<Item = &'a str>) -> Self {
        self.unserved = BUILT_IN.iter().copied().filter(|name| *name != IMPERATIVE_EVICTION).collect();
        for name in served {
            self.unserved.remove(name);
        }
        self
    }

    /// Whether an interceptor may have this name.
    pub fn allows(&self, name: &str) -> bool {
        !is_reserved(name) || self.names.contains(name)
    }

    /// Whether it is known that no program serves this name.
    pub fn is_unserved(&self, name: &str) -> bool {
        self.unserved.contains(name)
    }
}

/// Parses a built-in name from a command-line flag. Fails for all others.
pub fn parse_built_in_name(name: &str) -> Result<String, String> {
    if BUILT_IN.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(format!("must be one of the built-in names, which are {}", BUILT_IN.join(", ")))
}

/// Parses a name to allow from a command-line flag. Fails for names outside k8s.io, which are always allowed.
pub fn parse_reserved_name(name: &str) -> Result<String, String> {
    if !is_reserved(name) || !is_fully_qualified_domain_name(name) {
        return Err("must be a domain name under k8s.io; all other names may intercept already".to_owned());
    }
    Ok(name.to_owned())
}

/// The properties of a pod that determine its interceptors.
#[derive(Clone, Debug, Default)]
pub struct PodProperties<'a> {
    /// The names in `.spec.evictionInterceptors`, in order.
    pub eviction_interceptors: Vec<&'a str>,
    /// The names and priorities in `.spec.evictionResponders`.
    pub eviction_responders: Vec<(&'a str, i64)>,
    /// The pod's annotations.
    pub annotations: Option<&'a BTreeMap<String, String>>,
    /// Whether the controller of the pod is a DaemonSet.
    pub of_daemon_set: bool,
    /// Whether the pod is the mirror pod of a static pod.
    pub mirror: bool,
    /// The interceptors that have had their turn in an earlier request, which get no other. They count among those that
    /// the pod may name: otherwise it could name new ones for each request.
    pub had_turns: &'a [String],
}

/// The interceptors of a pod, and the warnings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedInterceptors {
    /// In the order of their turns; the last is [`IMPERATIVE_EVICTION`].
    pub targets: Vec<String>,
    /// One for each ignored entry. The controller publishes each as an event on the request.
    pub warnings: Vec<String>,
}

/// Selects the interceptors of a pod.
pub fn select_interceptors(pod: &PodProperties<'_>, allowed: &AllowedNames) -> SelectedInterceptors {
    let mut warnings = Vec::new();
    let mut targets: Vec<String> = Vec::new();
    let is_of_spec = !pod.eviction_interceptors.is_empty() || !pod.eviction_responders.is_empty();
    let ignored = |name: &str, why: &str| match is_of_spec {
        true => format!("interceptor {name:?} is ignored: {why}"),
        false => interceptor_annotations::ignored(name, why),
    };
    let had_turn = |name: &str| pod.had_turns.iter().any(|had| had == name);
    for name in named_by(pod, &mut warnings) {
        if let Some(why) = refusal(name, &targets, allowed) {
            warnings.push(ignored(name, &why));
        } else if name != IMPERATIVE_EVICTION && !had_turn(name) {
            targets.push(name.to_owned());
        }
    }
    let left = MAX_POD_INTERCEPTORS.saturating_sub(pod.had_turns.len());
    for beyond in targets.drain(targets.len().min(left)..) {
        let why = format!(
            "a pod may have at most {MAX_POD_INTERCEPTORS} interceptors, and those of the lowest priority are beyond"
        );
        warnings.push(ignored(&beyond, &why));
    }
    let default = pod.of_daemon_set.then_some(DAEMON_SET).or(pod.mirror.then_some(KUBELET));
    targets.extend(default.filter(|d| !targets.iter().any(|t| t == d)).map(str::to_owned));
    targets.push(IMPERATIVE_EVICTION.to_owned());
    SelectedInterceptors { targets, warnings }
}

/// The names in the first source that is not empty, in order.
fn named_by<'a>(pod: &PodProperties<'a>, warnings: &mut Vec<String>) -> Vec<&'a str> {
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
    if allowed.is_unserved(name) {
        return Some("no program of this installation serves it".to_owned());
    }
    before.iter().any(|b| b == name).then(|| "it is named twice".to_owned())
}

/// Whether this is a default interceptor, which belongs to Drydock or to its node agent. What it reports of itself is
/// trusted, and the pod's owner did not choose it.
pub fn is_default(name: &str) -> bool {
    DEFAULT_INTERCEPTORS.contains(&name)
}

/// Whether the name is under k8s.io: such names belong to the cluster and not to a tenant.
pub fn is_reserved(name: &str) -> bool {
    name == "k8s.io" || name.ends_with(".k8s.io")
}

#[cfg(test)]
#[path = "interceptors_tests.rs"]
mod tests;
