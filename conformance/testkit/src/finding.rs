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
}

/// Prints all findings and returns how many are bad.
pub fn print(findings: &[Finding]) -> usize {
    for finding in findings {
        eprintln!("    {} {}", if finding.good { "ok  " } else { "FAIL" }, finding.what);
    }
    findings.iter().filter(|finding| !finding.good).count()
}
