//! Validation of label selectors and conditions (k8s.io/apimachinery/pkg/apis/meta/v1/validation).

use std::collections::HashSet;

use drydock_machinery::field::{Error, ErrorList, Path};

use crate::meta::{Condition, LabelSelector, LabelSelectorRequirement};
use drydock_machinery::names::{label_value, qualified_name};

/// What Kubernetes says of a field that may not change.
pub const IMMUTABLE: &str = "field is immutable";

/// Errors of a label selector.
pub fn validate_label_selector(selector: &LabelSelector, path: &Path) -> ErrorList {
    let labels = path.child("matchLabels");
    let mut errors = ErrorList::new();
    for (key, value) in &selector.match_labels {
        errors.extend(validate_label_name(key, &labels));
        errors.extend(
            label_value(value).into_iter().map(|e| Error::invalid(labels.clone(), value.as_str(), e)),
        );
    }
    let expressions = path.child("matchExpressions");
    for (i, requirement) in selector.match_expressions.iter().enumerate() {
        errors.extend(validate_requirement(requirement, &expressions.index(i)));
    }
    errors
}

/// Errors of a label key.
pub fn validate_label_name(key: &str, path: &Path) -> ErrorList {
    qualified_name(key).into_iter().map(|e| Error::invalid(path.clone(), key, e)).collect()
}

/// Errors of label values, one path an item.
pub fn validate_label_values(values: &[String], path: &Path) -> ErrorList {
    let each = values.iter().enumerate();
    each.flat_map(|(i, v)| {
        label_value(v).into_iter().map(move |e| Error::invalid(path.index(i), v.as_str(), e))
    })
    .collect()
}

/// Errors of a list of conditions. Those that stand in `old` as they are pass.
pub fn validate_conditions(new: &[Condition], old: &[Condition], path: &Path) -> ErrorList {
    let mut seen = HashSet::new();
    let mut errors = ErrorList::new();
    for (i, condition) in new.iter().enumerate() {
        let path = path.index(i);
        if !seen.insert(condition.type_.as_str()) {
            errors.push(Error::duplicate(path.child("type"), condition.type_.as_str()));
        }
        if !old.contains(condition) {
            errors.extend(validate_condition(condition, &path));
        }
    }
    errors
}

fn validate_requirement(requirement: &LabelSelectorRequirement, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let values = path.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if requirement.values.is_empty() => {
            errors.push(Error::required(
                values.clone(),
                "must be specified when `operator` is 'In' or 'NotIn'",
            ));
        }
        "In" | "NotIn" => {}
        "Exists" | "DoesNotExist" if !requirement.values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(Error::forbidden(values.clone(), detail));
        }
        "Exists" | "DoesNotExist" => {}
        other => errors.push(Error::invalid(path.child("operator"), other, "not a valid selector operator")),
    }
    errors.extend(validate_label_name(&requirement.key, &path.child("key")));
    errors.extend(validate_label_values(&requirement.values, &values));
    errors
}

fn validate_condition(condition: &Condition, path: &Path) -> ErrorList {
    let mut errors = validate_label_name(&condition.type_, &path.child("type"));
    if !["True", "False", "Unknown"].contains(&condition.status.as_str()) {
        let supported = &["False", "True", "Unknown"];
        errors.push(Error::not_supported(path.child("status"), condition.status.as_str(), supported));
    }
    if condition.observed_generation < 0 {
        let detail = "must be greater than or equal to zero";
        errors.push(Error::invalid(path.child("observedGeneration"), condition.observed_generation, detail));
    }
    if condition.last_transition_time.is_none() {
        errors.push(Error::required(path.child("lastTransitionTime"), ""));
    }
    let reason = path.child("reason");
    if condition.reason.is_empty() {
        errors.push(Error::required(reason, ""));
    } else {
        if !is_condition_reason(&condition.reason) {
            errors.push(Error::invalid(reason.clone(), condition.reason.as_str(), CONDITION_REASON));
        }
        if condition.reason.len() > 1024 {
            errors.push(Error::too_long(reason, 1024));
        }
    }
    if condition.message.len() > 32 * 1024 {
        errors.push(Error::too_long(path.child("message"), 32 * 1024));
    }
    errors
}

const CONDITION_REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a \
    string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  \
    or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
    '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

fn is_condition_reason(reason: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let bytes = reason.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|b| word(*b))
        && bytes.iter().all(|b| word(*b) || matches!(b, b',' | b':'))
}
