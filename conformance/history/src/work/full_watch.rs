//! The watch that sees everything: it goes on after each fault where it was, until everything is delivered.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use drydock_storage::backend::{Revision, WatchItem, prefix_range};
use tokio_util::sync::CancellationToken;

use super::notes::{Notes, item};
use crate::context::HistoryContext;
use crate::record::{Rev, WatchStart};

/// How often it asks for its progress. Not a measurement.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Watches until `enough`; returns the revision that it reached.
pub async fn run(context: Arc<HistoryContext>, enough: CancellationToken) -> Rev {
    while !enough.is_cancelled() {
        let server = tokio::select! {
            server = context.server(0) => server,
            () = enough.cancelled() => break,
        };
        let after = context.observed();
        let keys = prefix_range(context.prefix);
        let mut notes = Notes::bytes(&context, "the full watch", keys.clone(), WatchStart::After(after));
        let Ok(mut items) = server.backend.watch(keys, Revision(after)).await else { continue };
        loop {
            let next = tokio::select! {
                next = items.recv() => next,
                () = server.gone.cancelled() => None,
                () = enough.cancelled() => None,
                () = tokio::time::sleep(PROGRESS_INTERVAL) => {
                    // A failure shows in the watch itself.
                    let _ = server.backend.request_progress().await;
                    continue;
                }
            };
            let Some(next) = next else { break };
            let failed = matches!(next, WatchItem::Failed(_));
            for item in item(next) {
                notes.item(item);
            }
            context.observed.store(notes.upto(), SeqCst);
            if failed {
                break;
            }
        }
    }
    context.observed()
}
