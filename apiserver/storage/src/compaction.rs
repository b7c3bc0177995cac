//! Periodic compaction: at each interval, discards the history that is older than one interval. A backend that is
//! short of space compacts earlier (retention.rs).

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::backend::{Backend, CompactionTurn};

/// The least time for which history is kept (kube-apiserver: --etcd-compaction-interval).
pub const INTERVAL: Duration = Duration::from_secs(300);

/// Compacts every `interval`, and concurrently runs the backend's early compaction (`relieve`), until `stop`.
pub async fn run(backend: &dyn Backend, interval: Duration, stop: CancellationToken) {
    stop.run_until_cancelled(async { tokio::join!(take_turns(backend, interval), backend.relieve()) }).await;
}

/// Never returns. Logs a turn that fails; the next turn discards what it left.
async fn take_turns(backend: &dyn Backend, interval: Duration) {
    let mut last = CompactionTurn::default();
    loop {
        tokio::time::sleep(interval).await;
        match backend.compaction_turn(last).await {
            Ok(turn) => last = turn,
            Err(error) => tracing::warn!(%error, "compaction failed; it is tried again"),
        }
    }
}
