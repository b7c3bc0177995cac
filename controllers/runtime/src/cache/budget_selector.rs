//! The selector of a PodDisruptionBudget, packed, or only known to be too large.
//!
//! A budget may have a selector of a megabyte, which takes ten times as much as a [`LabelSelector`]: with a few dozen such
//! budgets a tenant filled the memory of the controllers.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use drydock_api::metav1::{KnownLabels, LabelSelector};
use serde::Deserialize;

/// Most bytes of a selector that is kept: its texts, and [`TEXT_OVERHEAD`] for each of them.
pub const MAX_SELECTOR_BYTES: usize = 16 << 10;
/// What JSON has around each text: quotes, and a comma or a colon.
const TEXT_OVERHEAD: usize = 3;
/// Separates packed values.
const SEPARATOR: char = '\0';

/// A selector.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "LabelSelector")]
pub enum BudgetSelector {
    /// The requirements, all of which must be met. A pair of `matchLabels` is an `In` with one value.
    Known(Box<[PackedRequirement]>),
    /// It has more than `MAX_SELECTOR_BYTES`: only the host knows which pods it selects.
    Unknown {
        /// A hash of the selector, by which a change of it is noticed.
        digest: u64,
    },
}

/// A requirement of a known selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedRequirement {
    key: Box<str>,
    operator: PackedOperator,
    /// How many values there are; an empty text is one empty value, or no value.
    count: u32,
    values: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackedOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    /// Matches nothing.
    Other,
}

impl Default for BudgetSelector {
    fn default() -> Self {
        Self::Known(Box::default())
    }
}

impl From<LabelSelector> for BudgetSelector {
    fn from(selector: LabelSelector) -> Self {
        let labels = selector.match_labels.iter().map(|(key, value)| {
            let values = std::slice::from_ref(value);
            PackedRequirement::packed(key, PackedOperator::In, values)
        });
        let expressions = selector
            .match_expressions
            .iter()
            .map(|it| PackedRequirement::packed(&it.key, PackedOperator::of(&it.operator), &it.values));
        let packed = || labels.chain(expressions).collect::<Option<Box<[_]>>>();
        let known = (encoded_bytes(&selector) <= MAX_SELECTOR_BYTES).then(packed).flatten();
        known.map_or_else(|| Self::Unknown { digest: digest(&selector) }, Self::Known)
    }
}

impl BudgetSelector {
    /// Whether the selector selects a pod with these labels; none if it is unknown, or if that depends on a label that is not
    /// known.
    pub fn matches<'a>(&self, labels: impl Into<KnownLabels<'a>>) -> Option<bool> {
        let Self::Known(requirements) = self else { return None };
        let known = labels.into();
        known.meet(requirements.iter().map(|it| (&*it.key, it.matches(known.labels))))
    }

    /// What [`BudgetSelector::matches`] costs at most, in comparisons of strings.
    pub fn comparisons(&self) -> usize {
        match self {
            Self::Known(requirements) => requirements.iter().map(|it| 1 + it.count as usize).sum(),
            Self::Unknown { .. } => 0,
        }
    }

    /// Labels of which a pod has to have one for the selector to match: those of the first `In` with at most `most` values.
    /// None if there is no such requirement.
    pub fn required_labels(&self, most: usize) -> Option<impl Iterator<Item = (&str, &str)>> {
        let Self::Known(requirements) = self else { return None };
        let is_short =
            |it: &&PackedRequirement| it.operator == PackedOperator::In && it.count as usize <= most;
        let found = requirements.iter().find(is_short)?;
        Some(found.values().map(move |value| (&*found.key, value)))
    }

    /// Bytes that the selector takes in a cache, without its own struct.
    pub fn held_bytes(&self) -> usize {
        let Self::Known(requirements) = self else { return 0 };
        let texts = requirements.iter().map(|it| it.key.len() + it.values.len());
        size_of_val(&**requirements) + texts.sum::<usize>()
    }
}

impl PackedRequirement {
    /// Packs a requirement; none if that is not possible.
    fn packed(key: &str, operator: PackedOperator, values: &[String]) -> Option<Self> {
        let is_apart = !values.iter().any(|value| value.contains(SEPARATOR));
        let count = u32::try_from(values.len()).ok().filter(|_| is_apart)?;
        let values = values.join("\0").into();
        Some(Self { key: key.into(), operator, count, values })
    }

    fn values(&self) -> impl Iterator<Item = &str> {
        self.values.split(SEPARATOR).take(self.count as usize)
    }

    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&*self.key);
        let is_named = |value: &String| self.values().any(|named| named == value);
        match self.operator {
            PackedOperator::In => value.is_some_and(is_named),
            PackedOperator::NotIn => !value.is_some_and(is_named),
            PackedOperator::Exists => value.is_some(),
            PackedOperator::DoesNotExist => value.is_none(),
            PackedOperator::Other => false,
        }
    }
}

impl PackedOperator {
    fn of(name: &str) -> Self {
        match name {
            "In" => Self::In,
            "NotIn" => Self::NotIn,
            "Exists" => Self::Exists,
            "DoesNotExist" => Self::DoesNotExist,
            _ => Self::Other,
        }
    }
}

fn encoded_bytes(selector: &LabelSelector) -> usize {
    let text = |text: &String| text.len() + TEXT_OVERHEAD;
    let labels = selector.match_labels.iter().map(|(key, value)| text(key) + text(value));
    let expressions = selector
        .match_expressions
        .iter()
        .map(|it| text(&it.key) + text(&it.operator) + it.values.iter().map(text).sum::<usize>());
    labels.chain(expressions).sum()
}

fn digest(selector: &LabelSelector) -> u64 {
    let mut hasher = DefaultHasher::new();
    selector.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
#[path = "budget_selector_tests.rs"]
mod tests;
