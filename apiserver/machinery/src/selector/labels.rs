//! Label selectors.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::field::{Error, ErrorList, Path, aggregate, is_full};
use crate::names::{label_value, qualified_name};
use crate::object::Object;

/// Approximate bytes that an allocator and a set take for a short text in addition to it.
const ALLOCATED: usize = 40;

/// Requirements on labels, all of which must match; a selector without requirements selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelRequirements {
    requirements: Vec<Requirement>,
}

/// One requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// The operator of the comparison.
    pub operator: Operator,
    /// The values of the comparison.
    pub values: BTreeSet<String>,
}

/// Operators of label selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`: also true without the label.
    NotIn,
    /// `key=a`, `key==a`
    Equals,
    /// `key!=a`: also true without the label.
    NotEquals,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `key>1`
    GreaterThan,
    /// `key<1`
    LessThan,
}

impl LabelRequirements {
    /// Parses `a=b,c in (d,e),!f`. Fails with a 400 for an invalid selector.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        super::parser::parse(text).map(Self::new).map_err(ApiError::bad_request)
    }

    /// Creates a selector from requirements, sorted by key.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements }
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns the approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.requirements.iter().map(Requirement::bytes).sum()
    }

    /// The requirements, by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Returns a label that must have one particular value, and the value.
    pub fn required_value(&self) -> Option<(&str, &str)> {
        self.requirements.iter().find_map(|requirement| {
            match (requirement.operator, requirement.values.first()) {
                (Operator::Equals | Operator::In, Some(value)) if requirement.values.len() == 1 => {
                    Some((requirement.key.as_str(), value.as_str()))
                }
                _ => None,
            }
        })
    }

    /// Whether an object's labels match all requirements.
    pub fn matches(&self, object: &Object) -> bool {
        self.matches_labels(object.labels())
    }

    /// Whether these labels match all requirements.
    pub fn matches_labels(&self, labels: Option<&Map<String, Value>>) -> bool {
        let value = |key: &str| labels.and_then(|l| l.get(key)).map(|v| v.as_str().unwrap_or_default());
        self.requirements.iter().all(|r| r.holds(value(&r.key)))
    }
}

impl Requirement {
    /// Creates a requirement. Fails for an invalid key, number of values, or value.
    pub fn new(key: &str, operator: Operator, values: BTreeSet<String>) -> Result<Self, String> {
        let requirement = Self { key: key.to_owned(), operator, values };
        aggregate(&requirement.validate()).map_or(Ok(requirement), Err)
    }

    /// Whether it matches the label's value, or its absence.
    pub fn holds(&self, value: Option<&str>) -> bool {
        match (self.operator, value) {
            (Operator::Exists, value) => value.is_some(),
            (Operator::DoesNotExist, value) => value.is_none(),
            (Operator::NotIn | Operator::NotEquals, value) => value.is_none_or(|v| !self.values.contains(v)),
            (Operator::In | Operator::Equals, Some(value)) => self.values.contains(value),
            (Operator::GreaterThan, Some(value)) => self.compare(value, |label, limit| label > limit),
            (Operator::LessThan, Some(value)) => self.compare(value, |label, limit| label < limit),
            (_, None) => false,
        }
    }

    fn bytes(&self) -> usize {
        let values = self.values.iter().map(|value| size_of::<String>() + ALLOCATED + value.len());
        size_of::<Self>() + ALLOCATED + self.key.len() + values.sum::<usize>()
    }

    fn compare(&self, value: &str, holds: impl Fn(i64, i64) -> bool) -> bool {
        let limit = self.values.first().and_then(|v| v.parse::<i64>().ok());
        value.parse::<i64>().ok().zip(limit).is_some_and(|(label, limit)| holds(label, limit))
    }

    fn validate(&self) -> ErrorList {
        let mut errors: ErrorList = key_error(&self.key, &Path::new("key")).into_iter().collect();
        let path = Path::new("values");
        let shown: Vec<&str> = self.values.iter().map(String::as_str).collect();
        errors.extend(self.count_error().map(|why| Error::invalid(path.clone(), shown, why)));
        for (index, value) in self.values.iter().enumerate() {
            if is_full(&errors) {
                break;
            }
            let path = path.index(index);
            if self.compares_integers() && value.parse::<i64>().is_err() {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(Error::invalid(path.clone(), value.as_str(), why));
            }
            let wrong = label_value(value).join("; ");
            if !wrong.is_empty() {
                errors.push(Error::invalid(path.key(&self.key), value.as_str(), wrong));
            }
        }
        errors
    }

    fn count_error(&self) -> Option<&'static str> {
        let (why, right) = match self.operator {
            Operator::In | Operator::NotIn => {
                ("for 'in', 'notin' operators, values set can't be empty", !self.values.is_empty())
            }
            Operator::Equals | Operator::NotEquals => {
                ("exact-match compatibility requires one single value", self.values.len() == 1)
            }
            Operator::Exists | Operator::DoesNotExist => {
                ("values set must be empty for exists and does not exist", self.values.is_empty())
            }
            Operator::GreaterThan | Operator::LessThan => {
                ("for 'Gt', 'Lt' operators, exactly one value is required", self.values.len() == 1)
            }
        };
        (!right).then_some(why)
    }

    fn compares_integers(&self) -> bool {
        matches!(self.operator, Operator::GreaterThan | Operator::LessThan)
    }
}

/// Returns the errors of a key, as one error.
pub(super) fn key_error(key: &str, path: &Path) -> Option<Error> {
    let wrong = qualified_name(key).join("; ");
    (!wrong.is_empty()).then(|| Error::invalid(path.clone(), key, wrong))
}

impl fmt::Display for LabelRequirements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<_> = self.requirements.iter().map(Requirement::to_string).collect();
        f.write_str(&terms.join(","))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.values.iter().map(String::as_str).collect();
        let (key, values) = (&self.key, values.join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}
