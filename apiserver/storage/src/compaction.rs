//! Keeping history short: every few minutes, what was current one interval ago may be forgotten.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::backend::{Backend, Turn};

/// How long history is kept at least (kube-apiserver: --etcd-compaction-interval).
pub const INTERVAL: Duration = Duration::from_secs(300);

/// Takes a turn every `interval` until `stop`. A turn that fails is logged and made up for by the next.
pub async fn run(backend: &dyn Backend, interval: Duration, stop: CancellationToken) {
    let mut last = Turn::default();
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = stop.cancelled() => return,
        }
        match backend.compaction_turn(last).await {
            Ok(turn) => last = turn,
            Err(error) => tracing::warn!(%error, "compaction failed; it is tried again"),
        }
    }
}
