//! Why an opening of the store has ended: nothing but another opening takes writes again.

use std::sync::{Arc, OnceLock};

use crate::backend::BackendError;

/// What has ended it, if anything has; those who ask have a clone.
#[derive(Clone, Default)]
pub(super) struct StoreFault(Arc<OnceLock<String>>);

impl StoreFault {
    /// It ends. Of several reasons the first one is told.
    pub fn record(&self, why: String) {
        tracing::error!(why, "no write is taken until the store is opened again");
        let _ = self.0.set(why);
    }

    /// Whether it has come.
    pub fn is_recorded(&self) -> bool {
        self.0.get().is_some()
    }

    /// What it came by.
    pub fn why(&self) -> Option<String> {
        self.0.get().cloned()
    }

    /// What whoever writes from then on is told.
    pub fn refusal(&self) -> Option<BackendError> {
        self.why().map(BackendError::Closed)
    }
}
