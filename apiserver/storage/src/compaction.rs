//! Keeping history short: every few minutes, what was current one interval ago may be forgotten. A backend that runs short
//! of space forgets more (retention.rs).

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::backend::{Backend, Turn};

/// How long history is kept at least (kube-apiserver: --etcd-compaction-interval).
pub const INTERVAL: Duration = Duration::from_secs(300);

/// Takes a turn every `interval`, and relieves the backend in between, until `stop`.
pub async fn run(backend: &dyn Backend, interval: Duration, stop: CancellationToken) {
    stop.run_until_cancelled(async { tokio::join!(take_turns(backend, interval), backend.relieve()) }).await;
}

/// Never returns. A turn that fails is logged and made up for by the next.
async fn take_turns(backend: &dyn Backend, interval: Duration) {
    let mut last = Turn::default();
    loop {
        tokio::time::sleep(interval).await;
        match backend.compaction_turn(last).await {
            Ok(turn) => last = turn,
            Err(error) => tracing::warn!(%error, "compaction failed; it is tried again"),
        }
    }
}
