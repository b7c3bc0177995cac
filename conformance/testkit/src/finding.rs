//! What a judge found: one line for each fact that was checked.

/// A fact that was checked.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Whether it is as it should be.
    pub good: bool,
    /// The fact in words.
    pub what: String,
}

impl Finding {
    /// Returns a finding.
    pub fn new(good: bool, what: impl Into<String>) -> Finding {
        Finding { good, what: what.into() }
    }

    /// Returns a finding that is good if `found` is empty. Otherwise it says `bad`, and names what was found.
    pub fn of_nothing(found: &[impl AsRef<str>], good: &str, bad: &str) -> Finding {
        if found.is_empty() {
            return Self::new(true, good);
        }
        let found: Vec<_> = found.iter().map(AsRef::as_ref).collect();
        Self::new(false, format!("{bad}: {}", found.join(", ")))
    }
}
