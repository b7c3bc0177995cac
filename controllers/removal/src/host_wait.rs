//! Waits before a call is made again that the host could not serve.

use std::time::Duration;

use drydock_runtime::error::min_retry_delay;
use drydock_runtime::{ApiErrorKind, classify};
use kube::Error;

/// Wait where the host does not say for how long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Whether the host could not serve a call now, so that the same call may succeed later.
pub(crate) fn is_unserved(error: &Error) -> bool {
    matches!(classify(error), ApiErrorKind::Throttled | ApiErrorKind::Unavailable)
}

/// Waits before such a call is made again.
pub(crate) async fn wait_for_host(error: &Error) {
    tokio::time::sleep(min_retry_delay(error).unwrap_or(RETRY_AFTER)).await;
}
