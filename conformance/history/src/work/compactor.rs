//! Compacts history that the full watch has seen.

use std::sync::Arc;
use std::time::Duration;

use drydock_storage::backend::Revision;
use rand::RngExt;
use rand::rngs::StdRng;

use crate::context::HistoryContext;

pub async fn run(context: Arc<HistoryContext>, mut rng: StdRng) {
    loop {
        let pause = Duration::from_millis(rng.random_range(50..600));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = context.over.cancelled() => return,
        }
        let at = context.observed().saturating_sub(rng.random_range(0..80));
        let server = tokio::select! {
            server = context.server(0) => server,
            () = context.over.cancelled() => return,
        };
        context.recorder.compaction(at);
        let asked = server.backend.compact(Revision(at.max(1)));
        if !matches!(server.ask(&mut rng, asked).await, Some(Ok(()))) {
            context.recorder.count("compactions that failed");
        }
    }
}
