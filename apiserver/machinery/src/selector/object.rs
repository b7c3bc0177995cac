//! metav1.LabelSelector, the selector that stands in objects.

use std::collections::BTreeSet;

use serde_json::Value;

use super::labels::{LabelSelector, Operator, Requirement};
use crate::field::{Error, ErrorList, Path};
use crate::meta::{validate_label_name, validate_labels};
use crate::names;
use crate::quote::go_quote;

/// The selector that a metav1.LabelSelector stands for; an empty one selects everything. Its absence, which selects
/// nothing, is the caller's to see.
pub fn label_selector(selector: &Value) -> Result<LabelSelector, String> {
    let mut requirements = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        let values = BTreeSet::from([value.as_str().unwrap_or_default().to_owned()]);
        requirements.push(Requirement::new(key, Operator::Equals, values)?);
    }
    for expression in expressions(selector) {
        let operator = text(expression, "operator");
        let operator = parse_operator(operator)
            .ok_or_else(|| format!("{} is not a valid label selector operator", go_quote(operator)))?;
        let values = values(expression).map(str::to_owned).collect();
        requirements.push(Requirement::new(text(expression, "key"), operator, values)?);
    }
    Ok(LabelSelector::new(requirements))
}

/// Errors of a metav1.LabelSelector (ValidateLabelSelector).
pub fn validate_label_selector(selector: &Value, path: &Path) -> ErrorList {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let mut errors = validate_labels(labels.into_iter().flatten(), &path.child("matchLabels"));
    for (index, expression) in expressions(selector).enumerate() {
        errors.extend(validate_expression(expression, &path.child("matchExpressions").index(index)));
    }
    errors
}

fn validate_expression(expression: &Value, path: &Path) -> ErrorList {
    let operator = text(expression, "operator");
    let any = values(expression).next().is_some();
    let rule = match parse_operator(operator) {
        None => Some(Error::invalid(path.child("operator"), operator, "not a valid selector operator")),
        Some(Operator::In | Operator::NotIn) if !any => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            Some(Error::required(path.child("values"), detail))
        }
        Some(Operator::Exists | Operator::DoesNotExist) if any => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            Some(Error::forbidden(path.child("values"), detail))
        }
        Some(_) => None,
    };
    let mut errors: ErrorList = rule.into_iter().collect();
    errors.extend(validate_label_name(text(expression, "key"), &path.child("key")));
    for (index, value) in values(expression).enumerate() {
        let path = path.child("values").index(index);
        errors.extend(names::label_value(value).into_iter().map(|e| Error::invalid(path.clone(), value, e)));
    }
    errors
}

fn parse_operator(operator: &str) -> Option<Operator> {
    Some(match operator {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        _ => return None,
    })
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
