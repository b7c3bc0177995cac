//! What the memories have in common: texts that do not change with each step, and a bound on what is remembered.

use jiff::{SignedDuration, Timestamp};

use crate::actions::MaintenanceDecision;

/// A text that stays for a while as long as its key is the same, because each change writes the whole status,
/// and others may choose its words.
#[derive(Clone, Debug, Default)]
pub(crate) struct SteadyText<K, T> {
    /// What the text is about.
    pub(crate) key: K,
    pub(crate) text: T,
    /// When the text was taken.
    pub(crate) at: Timestamp,
}

impl<K: Clone + PartialEq, T: Clone + PartialEq> SteadyText<K, T> {
    /// Returns this text; or the one before, if that has the same key and is equal, or has not stayed for
    /// `stays` yet.
    pub(crate) fn after(
        before: Option<&Self>,
        key: K,
        text: T,
        stays: SignedDuration,
        now: Timestamp,
        decision: &mut MaintenanceDecision,
    ) -> Self {
        if let Some(before) = before.filter(|before| before.key == key) {
            let until = before.at.checked_add(stays).unwrap_or(Timestamp::MAX);
            let differs = before.text != text;
            if differs && now < until {
                decision.wake_at(until);
            }
            if !differs || now < until {
                return before.clone();
            }
        }
        Self { key, text, at: now }
    }
}

/// The latest of these times that is to be forgotten with all before it, so that at most `most` are left; none if there
/// are no more than that.
pub(crate) fn cutoff(mut times: Vec<Timestamp>, most: usize) -> Option<Timestamp> {
    times.sort_unstable_by(|a, b| b.cmp(a));
    times.get(most).copied()
}
