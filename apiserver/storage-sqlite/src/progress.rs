//! Progress reports of long operations on a store.

use std::sync::Arc;

/// The progress of one stage of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressStage {
    /// The name of the stage.
    pub name: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// How much there is to do; 0 if unknown.
    pub total: u64,
}

/// Receives a progress report from time to time.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(ProgressStage) + Send + Sync>);

impl Progress {
    /// Passes each report to `told`.
    pub fn new(told: impl Fn(ProgressStage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(told))
    }

    /// Ignores all reports.
    pub fn silent() -> Self {
        Self::new(|_| ())
    }

    /// Reports how much of a stage is done.
    pub fn report(&self, name: &'static str, done: u64, total: u64) {
        (self.0)(ProgressStage { name, done, total });
    }
}
