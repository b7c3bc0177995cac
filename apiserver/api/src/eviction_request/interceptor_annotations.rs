//! Interceptors that the annotations of a pod name (KEP-4563, "Interceptor list in Pod's annotations"). The
//! ValidatingAdmissionPolicy in deploy/base/interceptor-annotations.yaml warns of the same mistakes when the pod is
//! written.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::interceptors::{BUILT_IN, MAX_POD_INTERCEPTORS, is_reserved};
use super::validation::is_fully_qualified_domain_name;

/// Prefix of all annotations about interceptors.
pub const PREFIX: &str = "interceptor.evictionrequest.coordination.k8s.io/";
/// An annotation `PREFIX + PRIORITY + NAME: "PRIORITY/ROLE"` registers an interceptor on hosts that do not have the
/// pod field.
const PRIORITY: &str = "priority_";
/// Role of the controller that owns the pod. Among equal priorities, it has the last turn.
const CONTROLLER: &str = "controller";
/// Role of any other interceptor. An unknown role is treated as this one.
const INTERCEPTOR: &str = "interceptor";
/// Maximum number of digits of a priority, which is an int32.
const MAX_DIGITS: usize = 10;

/// The warning about an annotation whose interceptor is ignored, in the words of the policy.
pub(super) fn ignored(name: &str, why: &str) -> String {
    format!("annotation {PREFIX}{PRIORITY}{name} is ignored: {why}")
}

/// Returns the names in the order of their turns, and adds a warning for each annotation that has a mistake. An
/// annotation with a mistake is still used if its meaning is clear: a pod must not lose its interceptor to a misspelt
/// role.
pub(super) fn named_by<'a>(
    annotations: &'a BTreeMap<String, String>,
    warnings: &mut Vec<String>,
) -> Vec<&'a str> {
    let mut ranked = Vec::new();
    for (key, value) in annotations {
        let Some(rest) = key.strip_prefix(PREFIX) else { continue };
        let Some(name) = rest.strip_prefix(PRIORITY) else {
            warnings.push(format!("annotation {key} is ignored: its name must begin with {PRIORITY}"));
            continue;
        };
        let Some((priority, role)) = parse(value) else {
            warnings.push(format!(
                "annotation {key} is ignored: its value must be PRIORITY/ROLE, as 10000/controller"
            ));
            continue;
        };
        if priority < 0 {
            warnings.push(format!("annotation {key} has a negative priority; it is not ignored for that"));
        }
        if ![CONTROLLER, INTERCEPTOR].contains(&role) {
            warnings.push(format!(
                "annotation {key} has an unknown role: known are {CONTROLLER} and {INTERCEPTOR}; it is not ignored for that"
            ));
        }
        ranked.push((Reverse(priority), role == CONTROLLER, name));
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, _, name)| name).collect()
}

/// Returns the keys of the annotations without mistakes whose interceptors have the first turns: as many as a pod may name, and
/// beside them the first as many under k8s.io, of which only those count that are allowed, and all built-in ones. Where
/// there are too many annotations to be kept, the others make no difference.
pub fn first_in_turn(annotations: &BTreeMap<String, String>) -> BTreeSet<String> {
    let in_order = named_by(annotations, &mut Vec::new()).into_iter();
    let valid = in_order.filter(|name| is_fully_qualified_domain_name(name));
    let (reserved, free): (Vec<_>, Vec<_>) = valid.partition(|name| is_reserved(name));
    let (built_in, more): (Vec<_>, Vec<_>) = reserved.into_iter().partition(|name| BUILT_IN.contains(name));
    let first = |names: Vec<&'_ str>| {
        names.into_iter().take(MAX_POD_INTERCEPTORS).map(str::to_owned).collect::<Vec<_>>()
    };
    let names = built_in.into_iter().map(str::to_owned).chain(first(free)).chain(first(more));
    names.map(|name| format!("{PREFIX}{PRIORITY}{name}")).collect()
}

/// Parses `PRIORITY/ROLE`; returns `None` if the value does not have this form.
fn parse(value: &str) -> Option<(i32, &str)> {
    let (priority, role) = value.split_once('/')?;
    let digits = priority.strip_prefix('-').unwrap_or(priority);
    let is_number = digits.len() <= MAX_DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit());
    (is_number && !role.is_empty() && !role.contains('/')).then_some(())?;
    Some((priority.parse().ok()?, role))
}
