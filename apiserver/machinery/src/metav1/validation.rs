//! Validation of label selectors and conditions (k8s.io/apimachinery/pkg/apis/meta/v1/validation).

use std::collections::HashSet;

use crate::field::{ERRORS_MAX, Error, ErrorList, Path};
use crate::meta::{validate_label_name, validate_label_value};
use crate::schema::common::CONDITIONS_MAX;
use crate::selector;

use super::{Condition, LabelSelector};

/// Validates a label selector.
pub fn validate_label_selector(selector: &LabelSelector, path: &Path) -> ErrorList {
    selector::validate_label_selector(&serde_json::to_value(selector).unwrap_or_default(), path)
}

/// Validates label values; the path of an error has the index of the value.
pub fn validate_label_values(values: &[String], path: &Path) -> ErrorList {
    let errors = values.iter().enumerate();
    errors.flat_map(|(i, value)| validate_label_value(value, &path.index(i))).take(ERRORS_MAX).collect()
}

/// Validates a list of conditions. Conditions that are unchanged from `old` are always valid.
pub fn validate_conditions(new: &[Condition], old: &[Condition], path: &Path) -> ErrorList {
    if new.len() > CONDITIONS_MAX {
        return vec![Error::too_many(path.clone(), new.len(), CONDITIONS_MAX)];
    }
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
