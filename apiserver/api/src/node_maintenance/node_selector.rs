//! core/v1 NodeSelector: validation (pkg/apis/core/validation) and matching of nodes
//! (component-helpers/scheduling/corev1/nodeaffinity).

use std::collections::BTreeSet;

use drydock_machinery::Object;
use drydock_machinery::field::{Error, ErrorList, Path, is_full};
use drydock_machinery::meta::validate_label_name;
use drydock_machinery::names::dns1123_subdomain;

use super::limits::SelectorSize;
use super::types::{NodeMaintenance, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use drydock_machinery::metav1::KnownLabels;
use drydock_machinery::metav1::validation::validate_label_values;
use drydock_machinery::strategy::view::decode_spec;

/// The only field that `matchFields` may use.
const NAME_FIELD: &str = "metadata.name";

/// Returns the node selector of a maintenance that is stored or has been validated.
///
/// # Errors
/// Fails if there is no selector or it cannot be decoded.
pub fn of(maintenance: &Object) -> Result<NodeSelector, String> {
    let read: NodeMaintenance = decode_spec(maintenance)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    read.spec.node_selector.ok_or_else(|| "spec.nodeSelector: Required value".to_owned())
}

/// Whether the selector selects a node with this name and these labels. Terms are ORed. A term without requirements selects
/// nothing, and neither does one with an invalid requirement. None if it depends on a label that is not known.
pub fn matches<'a>(selector: &NodeSelector, name: &str, labels: impl Into<KnownLabels<'a>>) -> Option<bool> {
    let labels = labels.into();
    let mut any = Some(false);
    for term in &selector.node_selector_terms {
        match term_matches(term, name, labels) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => any = None,
        }
    }
    any
}

/// The names of all nodes that the selector can ever select, whether or not they exist. `None` unless every term has
/// a `matchFields` `metadata.name In [...]`, because otherwise any node can match later.
pub fn names(selector: &NodeSelector) -> Option<BTreeSet<&str>> {
    let is_name = |field: &&NodeSelectorRequirement| field.key == NAME_FIELD && field.operator == "In";
    let mut names = BTreeSet::new();
    for term in &selector.node_selector_terms {
        let mut named = term.match_fields.iter().filter(is_name).peekable();
        named.peek()?;
        names.extend(named.flat_map(|field| &field.values).map(String::as_str));
    }
    Some(names)
}

/// Validates a node selector.
pub fn validate(selector: &NodeSelector, path: &Path) -> ErrorList {
    let path = path.child("nodeSelectorTerms");
    if selector.node_selector_terms.is_empty() {
        return vec![Error::required(path, "must have at least one node selector term")];
    }
    let mut size = SelectorSize::default();
    selector.node_selector_terms.iter().for_each(|term| size.add_term(term));
    if let Some(error) = size.excess(&path) {
        return vec![error];
    }
    let mut errors = ErrorList::new();
    for (i, term) in selector.node_selector_terms.iter().enumerate() {
        if is_full(&errors) {
            break;
        }
        let path = path.index(i);
        for (j, requirement) in term.match_expressions.iter().enumerate() {
            errors.extend(validate_expression(requirement, &path.child("matchExpressions").index(j)));
        }
        for (j, requirement) in term.match_fields.iter().enumerate() {
            errors.extend(validate_field(requirement, &path.child("matchFields").index(j)));
        }
    }
    errors
}

fn term_matches(term: &NodeSelectorTerm, name: &str, known: KnownLabels<'_>) -> Option<bool> {
    let is_named = |r: &NodeSelectorRequirement| r.key == NAME_FIELD && requirement_matches(r, Some(name));
    if term.is_empty() || !term.match_fields.iter().all(is_named) {
        return Some(false);
    }
    let value = |key: &str| known.labels.get(key).map(String::as_str);
    let expressions = term.match_expressions.iter();
    known.meet(expressions.map(|r| (r.key.as_str(), requirement_matches(r, value(&r.key)))))
}

fn requirement_matches(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let among = |v: &str| requirement.values.iter().any(|x| x == v);
    match requirement.operator.as_str() {
        "In" => value.is_some_and(among),
        "NotIn" => !value.is_some_and(among),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared(requirement, value).is_some_and(|(label, bound)| label > bound),
        "Lt" => compared(requirement, value).is_some_and(|(label, bound)| label < bound),
        _ => false,
    }
}

/// The label's value and the bound as integers; `None` if one of them is not an integer or there is not exactly one
/// bound.
fn compared(requirement: &NodeSelectorRequirement, value: Option<&str>) -> Option<(i64, i64)> {
    let [bound] = requirement.values.as_slice() else { return None };
    Some((value?.parse().ok()?, bound.parse().ok()?))
}

fn validate_expression(requirement: &NodeSelectorRequirement, path: &Path) -> ErrorList {
    let (count, values) = (requirement.values.len(), path.child("values"));
    let mut errors = ErrorList::new();
    match requirement.operator.as_str() {
        "In" | "NotIn" if count == 0 => {
            errors.push(Error::required(
                values.clone(),
                "must be specified when `operator` is 'In' or 'NotIn'",
            ));
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(Error::forbidden(values.clone(), detail));
        }
        "Gt" | "Lt" if count != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(Error::required(values.clone(), detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => errors.push(Error::invalid(path.child("operator"), other, "not a valid selector operator")),
    }
    errors.extend(validate_label_name(&requirement.key, &path.child("key")));
    errors.extend(validate_label_values(&requirement.values, &values));
    errors
}

fn validate_field(requirement: &NodeSelectorRequirement, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match requirement.operator.as_str() {
        "In" | "NotIn" if requirement.values.len() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(Error::required(path.child("values"), detail));
        }
        "In" | "NotIn" => {}
        other => errors.push(Error::invalid(path.child("operator"), other, "not a valid selector operator")),
    }
    if requirement.key != NAME_FIELD {
        let detail = "not a valid field selector key";
        errors.push(Error::invalid(path.child("key"), requirement.key.as_str(), detail));
        return errors;
    }
    for (i, value) in requirement.values.iter().enumerate() {
        let path = path.child("values").index(i);
        errors.extend(
            dns1123_subdomain(value).into_iter().map(|e| Error::invalid(path.clone(), value.as_str(), e)),
        );
    }
    errors
}

#[cfg(test)]
#[path = "node_selector_tests.rs"]
mod tests;
