//! One task for each watch: it takes events from the ring while it keeps up, and reads them from the log table
//! otherwise.

use std::ops::Range;
use std::sync::{Arc, Weak};

use drydock_storage::backend::{BackendError, Result, Revision, WatchItem};
use tokio::sync::mpsc;

use crate::feed::{EventBatch, FeedHead, FeedSubscription};
use crate::read;
use crate::readers::Readers;

/// Batches queued for the receiver before its watch falls behind. A batch may hold `read::WINDOW_BYTES`. Caches have
/// one or two watches each, and clients have none.
const CHANNEL: usize = 4;

/// Starts a watch of `keys` after a revision.
pub(super) fn start(
    readers: Arc<Readers>,
    subscription: FeedSubscription,
    keys: Range<String>,
    after: Revision,
) -> mpsc::Receiver<WatchItem> {
    let (items, receiver) = mpsc::channel(CHANNEL);
    let round = subscription.head.borrow().round;
    let watch = SqliteWatch {
        readers: Arc::downgrade(&readers),
        subscription,
        keys,
        after,
        cursor: after.0,
        round,
        items,
    };
    tokio::spawn(watch.run());
    receiver
}

struct SqliteWatch {
    /// Weak, because a running watch must not keep the file open.
    readers: Weak<Readers>,
    subscription: FeedSubscription,
    keys: Range<String>,
    after: Revision,
    /// Everything up to here has been sent.
    cursor: u64,
    /// The last request for progress that was answered.
    round: u64,
    items: mpsc::Sender<WatchItem>,
}

/// The receiver was dropped.
struct ReceiverDropped;

impl SqliteWatch {
    async fn run(mut self) {
        let items = self.items.clone();
        let failure = tokio::select! {
            failure = self.pump() => failure,
            () = items.closed() => return,
        };
        if let Ok(Err(error)) = failure {
            let _ = items.send(WatchItem::Failed(error)).await;
        }
    }

    /// Runs until the receiver is dropped (`Err`) or the watch has failed.
    async fn pump(&mut self) -> Result<Result<(), BackendError>, ReceiverDropped> {
        if let Err(error) = self.check_start().await {
            return Ok(Err(error));
        }
        loop {
            let head = *self.subscription.head.borrow_and_update();
            while self.cursor < head.revision {
                match self.next_batch().await {
                    Ok(batch) => self.deliver(batch).await?,
                    Err(error) => return Ok(Err(error)),
                }
            }
            self.tell_progress(head).await?;
            if self.subscription.head.changed().await.is_err() {
                return Ok(Err(closed()));
            }
        }
    }

    async fn check_start(&self) -> Result<()> {
        let bounds = self.readers()?.run(read::oldest).await?;
        read::check_start(self.after, bounds.oldest)
    }

    async fn next_batch(&self) -> Result<EventBatch> {
        if let Some(batch) = self.subscription.take(&self.keys, self.cursor) {
            return Ok(batch);
        }
        let (keys, cursor) = (self.keys.clone(), self.cursor);
        self.readers()?.run(move |connection| read::events(connection, &keys, cursor)).await
    }

    async fn deliver(&mut self, batch: EventBatch) -> Result<(), ReceiverDropped> {
        if !batch.events.is_empty() {
            self.items.send(WatchItem::Events(batch.events)).await.map_err(|_| ReceiverDropped)?;
        }
        self.cursor = batch.upto;
        Ok(())
    }

    /// Answers a progress request after all events that the caller may know of have been sent.
    async fn tell_progress(&mut self, head: FeedHead) -> Result<(), ReceiverDropped> {
        if head.round == self.round || head.revision < head.progress_revision.max(self.after.0) {
            return Ok(());
        }
        self.round = head.round;
        self.items.send(WatchItem::Progress(Revision(self.cursor))).await.map_err(|_| ReceiverDropped)
    }

    fn readers(&self) -> Result<Arc<Readers>> {
        self.readers.upgrade().ok_or_else(closed)
    }
}

fn closed() -> BackendError {
    BackendError::Unavailable("the store has been closed".to_owned())
}
