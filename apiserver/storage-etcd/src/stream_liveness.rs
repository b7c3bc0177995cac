//! Tracks whether etcd still answers on the stream of a watch.
//!
//! While a watch is catching up, however long that takes, etcd reports no progress, and its stream is as silent as a
//! dead one. But etcd answers at once when another watch is opened on the same stream, even if it refuses it. So a
//! ping opens a watch of no keys, which leaves nothing behind (etcd: api/v3rpc/watch.go, recvLoop; storage/mvcc,
//! ErrEmptyWatcherRange). The refusal contains etcd's newest revision.

use std::collections::VecDeque;
use std::time::Duration;

use etcd_client::proto::PbWatchResponse;
use etcd_client::{Error, WatchOptions, WatchRequestSender};
use tokio::time::Instant;

/// The watch id in a response about no particular watch (etcd: clientv3.InvalidWatchID).
pub(super) const NO_WATCH: i64 = -1;

/// The pings and deadlines of a stream.
#[derive(Default)]
pub(super) struct StreamLiveness {
    /// When to send a ping.
    due: Option<Instant>,
    /// When the stream counts as lost.
    lost: Option<Instant>,
    /// For each unanswered ping, the round of progress that had been requested before it.
    pings: VecDeque<u64>,
}

impl StreamLiveness {
    /// Records a request: a response has to arrive within `patience`.
    pub fn expect(&mut self, patience: Duration) {
        if self.lost.is_none() {
            let now = Instant::now();
            (self.due, self.lost) = (Some(now + patience / 2), Some(now + patience));
        }
    }

    /// Records that a response arrived.
    pub fn received(&mut self) {
        (self.due, self.lost) = (None, None);
    }

    /// Waits until a ping is due; forever if none is.
    pub async fn due(&self) {
        until(self.due).await;
    }

    /// Waits until an expected response is overdue; forever if none is expected.
    pub async fn lost(&self) {
        until(self.lost).await;
    }

    /// Sends a ping: a watch of the reversed `range`, which holds no key. `range` may be any range with a key in it.
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

    /// Returns the round of the oldest ping: pings are answered in order.
    pub fn answered(&mut self) -> Option<u64> {
        self.pings.pop_front()
    }
}

/// Whether a response is the answer to a ping. The first response on a stream never is: it is about the stream's own
/// watch.
pub(super) fn is_pong(response: &PbWatchResponse) -> bool {
    response.created && response.canceled && response.watch_id == NO_WATCH
}

/// Waits until `moment`; forever if there is none.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
