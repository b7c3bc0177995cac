//! What long work on a store tells of how far it is.

use std::sync::Arc;

/// How far one stage of the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// What is being done.
    pub name: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// How much there is; 0 where nobody knows.
    pub total: u64,
}

/// Is told of each stage, now and then.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(Stage) + Send + Sync>);

impl Progress {
    /// Tells `told`.
    pub fn new(told: impl Fn(Stage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(told))
    }

    /// Tells nobody.
    pub fn silent() -> Self {
        Self::new(|_| ())
    }

    /// So much of a stage is done.
    pub fn tell(&self, name: &'static str, done: u64, total: u64) {
        (self.0)(Stage { name, done, total });
    }
}
