//! Selectors of lists and watches: label selectors (k8s.io/apimachinery/pkg/labels) and field selectors (pkg/fields).

mod fields;
mod labels;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;

pub use fields::{FieldSelector, FieldTerm};
pub use labels::{LabelRequirements, Operator, Requirement};

use serde_json::Value;

use crate::field::{Error, ErrorList, Path, is_full};
use crate::meta::{validate_label_name, validate_label_value, validate_labels};

/// Maximum number of terms in a selector. Limited because each term is evaluated for each object and event.
/// Kubernetes has no such limit.
pub const TERMS_MAX: usize = 100;

fn too_many_terms() -> String {
    format!("a selector may not have more than {TERMS_MAX} terms")
}

/// Validates a metav1.LabelSelector, the form of a selector in objects (ValidateLabelSelector).
pub fn validate_label_selector(selector: &Value, path: &Path) -> ErrorList {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let mut errors = validate_labels(labels.into_iter().flatten(), &path.child("matchLabels"));
    for (index, expression) in expressions(selector).enumerate() {
        if is_full(&errors) {
            break;
        }
        errors.extend(validate_expression(expression, &path.child("matchExpressions").index(index)));
    }
    errors
}

fn validate_expression(expression: &Value, path: &Path) -> ErrorList {
    let operator = text(expression, "operator");
    let any = values(expression).next().is_some();
    let rule = match operator {
        "In" | "NotIn" if !any => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            Some(Error::required(path.child("values"), detail))
        }
        "Exists" | "DoesNotExist" if any => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            Some(Error::forbidden(path.child("values"), detail))
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
        _ => Some(Error::invalid(path.child("operator"), operator, "not a valid selector operator")),
    };
    let mut errors: ErrorList = rule.into_iter().collect();
    errors.extend(validate_label_name(text(expression, "key"), &path.child("key")));
    for (index, value) in values(expression).enumerate() {
        if is_full(&errors) {
            break;
        }
        errors.extend(validate_label_value(value, &path.child("values").index(index)));
    }
    errors
}

fn expressions(selector: &Value) -> impl Iterator<Item = &Value> {
    selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten()
}

fn values(expression: &Value) -> impl Iterator<Item = &str> {
    let values = expression.get("values").and_then(Value::as_array);
    values.into_iter().flatten().map(|v| v.as_str().unwrap_or_default())
}

fn text<'a>(expression: &'a Value, field: &str) -> &'a str {
    expression.get(field).and_then(Value::as_str).unwrap_or_default()
}
