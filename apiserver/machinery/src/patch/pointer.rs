//! JSON pointers (RFC 6901), with the negative list indices that kube-apiserver takes.

use serde_json::Value;

use super::budget::Refused;

/// A parsed pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer(Vec<String>);

impl Pointer {
    /// `/a/b~1c/0`; the empty text is the whole document.
    pub(super) fn parse(text: &str) -> Result<Self, Refused> {
        if text.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let rest = text.strip_prefix('/').ok_or(Refused)?;
        Ok(Self(rest.split('/').map(|t| t.replace("~1", "/").replace("~0", "~")).collect()))
    }

    /// Number of steps.
    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }

    /// The container and the last step; None for the whole document.
    pub(super) fn split(&self) -> Option<(&[String], &str)> {
        self.0.split_last().map(|(last, parents)| (parents, last.as_str()))
    }

    /// Whether `self` lies strictly below `other`.
    pub(super) fn below(&self, other: &Self) -> bool {
        self.0.len() > other.0.len() && self.0.starts_with(&other.0)
    }

    /// The value here; None for a member that its struct or map has not.
    pub(super) fn member<'a>(&self, doc: &'a Value) -> Result<Option<&'a Value>, Refused> {
        let Some((last, parents)) = self.0.split_last() else { return Ok(Some(doc)) };
        let within = Self(parents.to_vec());
        match within.get(doc)? {
            Value::Object(map) => Ok(map.get(last)),
            Value::Array(items) => items.get(index(last, items.len())?).map(Some).ok_or(Refused),
            _ => Err(Refused),
        }
    }

    /// The value here.
    fn get<'a>(&self, doc: &'a Value) -> Result<&'a Value, Refused> {
        self.0.iter().try_fold(doc, |value, step| match value {
            Value::Object(map) => map.get(step).ok_or(Refused),
            Value::Array(items) => items.get(index(step, items.len())?).ok_or(Refused),
            _ => Err(Refused),
        })
    }
}

/// The container that `steps` lead to.
pub(super) fn container<'a>(doc: &'a mut Value, steps: &[String]) -> Result<&'a mut Value, Refused> {
    steps.iter().try_fold(doc, |value, step| match value {
        Value::Object(map) => map.get_mut(step).ok_or(Refused),
        Value::Array(items) => {
            let at = index(step, items.len())?;
            items.get_mut(at).ok_or(Refused)
        }
        _ => Err(Refused),
    })
}

/// A list index; -1 is the last of `len` places.
pub(super) fn index(step: &str, len: usize) -> Result<usize, Refused> {
    let n: i64 = step.parse().map_err(|_| Refused)?;
    let n = if n < 0 { n.checked_add(i64::try_from(len).map_err(|_| Refused)?).ok_or(Refused)? } else { n };
    usize::try_from(n).map_err(|_| Refused)
}
