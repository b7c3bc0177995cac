//! What a judge found: one line each, good or bad.

/// Something that was checked.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Is it as it should be?
    pub good: bool,
    /// What it is.
    pub what: String,
}

impl Finding {
    /// A finding.
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
