//! The fault that ended an open store: it accepts no writes until it is opened again.

use std::sync::{Arc, OnceLock};

use drydock_storage::backend::BackendError;

/// The fault, if there is one; clones share it.
#[derive(Clone, Default)]
pub(super) struct StoreFault(Arc<OnceLock<String>>);

impl StoreFault {
    /// Records a fault. The first one recorded is kept.
    pub fn record(&self, why: String) {
        tracing::error!(why, "no write is taken until the store is opened again");
        let _ = self.0.set(why);
    }

    /// Whether a fault is recorded.
    pub fn is_recorded(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns the recorded fault.
    pub fn why(&self) -> Option<String> {
        self.0.get().cloned()
    }

    /// Returns the error that every later write gets; `None` if there is no fault.
    pub fn refusal(&self) -> Option<BackendError> {
        self.why().map(BackendError::Closed)
    }
}
