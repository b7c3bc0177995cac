//! Two records side by side.

use std::fmt;

use serde_json::Value;

/// One field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// Number of the answer.
    pub answer: usize,
    /// `body.metadata.labels.a`
    pub field: String,
    /// The host's value.
    pub theirs: Option<Value>,
    /// Our value.
    pub ours: Option<Value>,
}

/// Every field that differs.
pub fn compare(theirs: &[Value], ours: &[Value]) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for answer in 0..theirs.len().max(ours.len()) {
        let mut fields = Vec::new();
        walk(String::new(), theirs.get(answer), ours.get(answer), &mut fields);
        found.extend(fields.into_iter().map(|(field, theirs, ours)| Mismatch {
            answer,
            field,
            theirs,
            ours,
        }));
    }
    found
}

type DifferingField = (String, Option<Value>, Option<Value>);

fn walk(path: String, theirs: Option<&Value>, ours: Option<&Value>, found: &mut Vec<DifferingField>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (theirs, ours) {
        (Some(Value::Object(theirs)), Some(Value::Object(ours))) => {
            for (key, value) in theirs {
                walk(below(key), Some(value), ours.get(key), found);
            }
            for (key, value) in ours.iter().filter(|(key, _)| !theirs.contains_key(*key)) {
                walk(below(key), None, Some(value), found);
            }
        }
        (Some(Value::Array(theirs)), Some(Value::Array(ours))) if theirs.len() == ours.len() => {
            for (at, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                walk(below(&at.to_string()), Some(theirs), Some(ours), found);
            }
        }
        (theirs, ours) if theirs == ours => {}
        (theirs, ours) => found.push((path, theirs.cloned(), ours.cloned())),
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<Value>| value.as_ref().map_or("(absent)".to_owned(), Value::to_string);
        let (theirs, ours) = (show(&self.theirs), show(&self.ours));
        let same = theirs.bytes().zip(ours.bytes()).take_while(|(a, b)| a == b).count();
        writeln!(f, "    {}", self.field)?;
        writeln!(f, "      kube-apiserver  {}", around(&theirs, same))?;
        writeln!(f, "      ours            {}", around(&ours, same))
    }
}

/// As much of a long text as shows where it begins to differ.
fn around(text: &str, same: usize) -> String {
    let boundary =
        |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (start, end) = (boundary(same.saturating_sub(60)), boundary(same + 240));
    let before = if start > 0 { "... " } else { "" };
    let after = if end < text.len() { " ..." } else { "" };
    format!("{before}{}{after}", &text[start..end])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_field_that_differs_is_named_once() {
        let theirs = [json!({"a": {"b": 1, "c": [1, 2]}, "d": 1}), json!(1)];
        let ours = [json!({"a": {"b": 2, "c": [1, 3]}, "e": 1})];
        let found = compare(&theirs, &ours);
        let fields: Vec<_> = found.iter().map(|m| (m.answer, m.field.as_str())).collect();
        assert_eq!(fields, [(0, "a.b"), (0, "a.c.1"), (0, "d"), (0, "e"), (1, "")]);
    }
}
