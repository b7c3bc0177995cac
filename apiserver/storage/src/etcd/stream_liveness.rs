//! Whether etcd still answers on a watch's stream.
//!
//! It tells no progress while the watch is catching up, however long that takes, and so is as silent as one that is gone.
//! But it answers at once to who opens another watch on the same stream, even to refuse it: so it is asked for one of no
//! keys, which leaves nothing behind (etcd: api/v3rpc/watch.go, recvLoop; storage/mvcc, ErrEmptyWatcherRange). The
//! refusal has etcd's newest revision with it.

use std::collections::VecDeque;
use std::time::Duration;

use etcd_client::proto::PbWatchResponse;
use etcd_client::{Error, WatchOptions, WatchRequestSender};
use tokio::time::Instant;

/// The id in an answer about no watch in particular (etcd: clientv3.InvalidWatchID).
pub(super) const NO_WATCH: i64 = -1;

/// What is known of a stream's life.
#[derive(Default)]
pub(super) struct StreamLiveness {
    /// When to ping it.
    due: Option<Instant>,
    /// When to give it up.
    lost: Option<Instant>,
    /// Of each ping that is not answered, which round of progress had been asked for before.
    pings: VecDeque<u64>,
}

impl StreamLiveness {
    /// Something was asked: within `patience` something has to come.
    pub fn expect(&mut self, patience: Duration) {
        if self.lost.is_none() {
            let now = Instant::now();
            (self.due, self.lost) = (Some(now + patience / 2), Some(now + patience));
        }
    }

    /// Something has come.
    pub fn received(&mut self) {
        (self.due, self.lost) = (None, None);
    }

    /// Waits until it is time for a ping.
    pub async fn due(&self) {
        until(self.due).await;
    }

    /// Waits until nothing came that should have.
    pub async fn lost(&self) {
        until(self.lost).await;
    }

    /// Asks for something that etcd answers whatever it is about; `range` is any that has a key.
    pub async fn ping(
        &mut self,
        requests: &mut WatchRequestSender,
        range: &(String, String),
        round: u64,
    ) -> Result<(), Error> {
        self.due = None;
        self.pings.push_back(round);
        let (start, end) = range.clone();
        requests.watch(end, Some(WatchOptions::new().with_range(start))).await
    }

    /// A ping was answered; they are in the order in which they were made.
    pub fn answered(&mut self) -> Option<u64> {
        self.pings.pop_front()
    }
}

/// Whether it refuses the watch of a ping. The first response on a stream is about the watch that the stream is for.
pub(super) fn is_pong(response: &PbWatchResponse) -> bool {
    response.created && response.canceled && response.watch_id == NO_WATCH
}

/// Waits for a moment, for ever if there is none.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
