//! The rules of the code as ordinary tests: who may depend on whom, what each file says and how long it may be.
//! The rules stand in `tests/`; here is what they read the repository with.

pub mod manifest;
pub mod repository;
pub mod source;

/// Fails with every place that breaks a rule, and with what to do there.
///
/// # Panics
/// If there is one.
#[track_caller]
pub fn none(found: &[String], what_to_do: &str) {
    assert!(found.is_empty(), "{what_to_do}:\n  {}\n", found.join("\n  "));
}
