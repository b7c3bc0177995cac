//! The rules of the code as ordinary tests: which crates and modules may depend on which, what each file
//! contains and how long it may be. The rules are in `tests/`; this library reads the repository for them.

pub mod manifest;
pub mod repository;
pub mod shell;
pub mod source;

/// Fails with each place that breaks a rule, and says what to do there.
///
/// # Panics
/// If there is one.
#[track_caller]
pub fn none(found: &[String], what_to_do: &str) {
    assert!(found.is_empty(), "{what_to_do}:\n  {}\n", found.join("\n  "));
}
