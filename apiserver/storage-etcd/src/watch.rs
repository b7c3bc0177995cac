//! A watch that outlives its connections: a broken stream is opened again.

use std::ops::Range;
use std::time::Duration;

use drydock_storage::backend::{BackendError, Result, Revision, WatchItem};
use etcd_client::{Error, WatchOptions, WatchRequestSender, WatchResponse, WatchResponseStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::error::translate;
use crate::keys::{Prefix, RevisionOffset};
use crate::members::{MemberChoice, Members};
use crate::record;
use crate::stream_liveness::StreamLiveness;
use crate::watch_state::WatchState;

/// Batches queued for the receiver; when the queue is full the stream is not read, and etcd holds the rest. A batch
/// may hold megabytes. Caches have one or two watches each, and clients have none.
const CHANNEL: usize = 4;
/// The first pause before a broken stream is opened again; it doubles up to the longest.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long opening a stream may take, and how long a stream may be silent after a request. It doubles with each
/// stream that was silent, up to the longest.
const SILENCE: Duration = Duration::from_secs(2);
/// The longest time that a stream may be silent after a request.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);
/// How long to wait before progress is requested again: etcd drops a request if the watch has not caught up.
const PROGRESS_RETRY: Duration = Duration::from_millis(100);
/// How often progress is requested even if no caller has. etcd reports it unasked only every ten minutes, and a
/// stream that breaks continues from the last report: that revision must not be compacted, which happens after five
/// minutes (`compaction`).
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// The largest message accepted. etcd sends events in fragments of about its largest request, so a message of this
/// size is not etcd's.
const LARGEST_MESSAGE: usize = 256 << 20;

/// One watch.
pub(super) struct EtcdWatch {
    members: Members,
    /// The member that the stream is connected to.
    chosen: MemberChoice,
    /// How long the next stream may be silent after a request.
    patience: Duration,
    range: Option<(String, String)>,
    revision_offset: RevisionOffset,
    state: WatchState,
    progress: watch::Receiver<u64>,
}

/// Why a stream has ended.
enum StreamEnd {
    /// The receiver of the watch was dropped.
    Gone,
    /// The watch cannot continue.
    Failed(BackendError),
    /// The stream broke; a new one may continue after it.
    Broken(BackendError),
    /// An expected response did not arrive; a new stream may continue.
    Silent,
}

impl From<BackendError> for StreamEnd {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Compacted { .. } | BackendError::Corrupt(_) => StreamEnd::Failed(error),
            other => StreamEnd::Broken(other),
        }
    }
}

impl EtcdWatch {
    pub fn new(
        members: Members,
        prefix: Prefix,
        keys: Range<String>,
        after: Revision,
        progress: watch::Receiver<u64>,
    ) -> Self {
        let range = prefix.range(&keys);
        Self::of_range(members, prefix, range, after, progress)
    }

    /// Creates a watch of the record of a prefix.
    pub fn of_record(
        members: Members,
        prefix: Prefix,
        after: Revision,
        progress: watch::Receiver<u64>,
    ) -> Self {
        let key = prefix.key(record::KEY);
        let range = Some((key.clone(), key + "\0"));
        Self::of_range(members, prefix, range, after, progress)
    }

    fn of_range(
        members: Members,
        prefix: Prefix,
        range: Option<(String, String)>,
        after: Revision,
        progress: watch::Receiver<u64>,
    ) -> Self {
        let (revision_offset, round) = (prefix.revision_offset, *progress.borrow());
        Self {
            chosen: members.chosen(),
            members,
            patience: SILENCE,
            range,
            revision_offset,
            state: WatchState::new(prefix, after, round),
            progress,
        }
    }

    /// Starts a task that runs until the receiver is dropped or the watch fails.
    pub fn start(self) -> mpsc::Receiver<WatchItem> {
        let (items, receiver) = mpsc::channel(CHANNEL);
        tokio::spawn(async move {
            let gone = items.clone();
            tokio::select! {
                () = self.run(items) => {}
                () = gone.closed() => {}
            }
        });
        receiver
    }

    async fn run(mut self, items: mpsc::Sender<WatchItem>) {
        if self.range.is_none() {
            return items.closed().await;
        }
        if let Err(error) = self.revision_offset.check_start(self.state.restart()) {
            let _ = items.send(WatchItem::Failed(error)).await;
            return;
        }
        let mut pause = PAUSE;
        loop {
            let mut lived = false;
            match self.stream(&items, &mut lived).await {
                StreamEnd::Gone => return,
                StreamEnd::Failed(error) => {
                    let _ = items.send(WatchItem::Failed(error)).await;
                    return;
                }
                StreamEnd::Broken(error) => {
                    self.members.contact().failed(&error);
                    match lived {
                        true => tracing::info!(%error, "a watch of etcd broke, and is opened again"),
                        false => {
                            tracing::debug!(%error, "a watch of etcd cannot be opened, and is tried again")
                        }
                    }
                }
                StreamEnd::Silent => {
                    self.patience = (self.patience * 2).min(LONGEST_SILENCE);
                    match lived {
                        true => tracing::info!("a watch of etcd is silent, and is opened again"),
                        false => tracing::debug!("a watch of etcd is silent, and is opened again"),
                    }
                }
            }
            pause = if lived { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            self.members.switch_from(self.chosen);
            tokio::time::sleep(pause).await;
        }
    }

    /// Delivers from one stream until it ends.
    async fn stream(&mut self, items: &mpsc::Sender<WatchItem>, lived: &mut bool) -> StreamEnd {
        let after = self.state.restart();
        let mut choices = self.members.choices();
        self.chosen = *choices.borrow_and_update();
        let (mut requests, mut responses) =
            match tokio::time::timeout(self.patience(), self.open(after)).await {
                Ok(Ok(opened)) => opened,
                Ok(Err(error)) => return error.into(),
                Err(_) => return StreamEnd::Silent,
            };
        let (mut ask_at, mut progress_at) = (Instant::now(), Instant::now() + PROGRESS_INTERVAL);
        let mut liveness = StreamLiveness::default();
        loop {
            let unanswered = self.state.is_unanswered(*self.progress.borrow());
            let asked = tokio::select! {
                response = responses.message() => {
                    *lived = true;
                    liveness.received();
                    match self.deliver(response.map_err(translate), &mut liveness, items).await {
                        Ok(true) => ask_at = Instant::now(),
                        Ok(false) => {}
                        Err(end) => return end,
                    }
                    Ok(())
                }
                () = liveness.lost(), if self.members.count() > 1 => return StreamEnd::Silent,
                () = liveness.due() => self.ping(&mut liveness, &mut requests).await,
                // A request has found the member silent: ask whether it still answers on this stream.
                Ok(()) = choices.changed() => {
                    liveness.expect(self.patience);
                    self.ping(&mut liveness, &mut requests).await
                }
                () = tokio::time::sleep_until(ask_at), if unanswered => {
                    ask_at = Instant::now() + PROGRESS_RETRY;
                    self.ask(&mut liveness, &mut requests).await
                }
                () = tokio::time::sleep_until(progress_at) => {
                    progress_at = Instant::now() + PROGRESS_INTERVAL;
                    self.ask(&mut liveness, &mut requests).await
                }
                changed = self.progress.changed(), if !unanswered => {
                    if changed.is_err() {
                        return StreamEnd::Failed(BackendError::Unavailable("the store has been closed".to_owned()));
                    }
                    ask_at = Instant::now();
                    Ok(())
                }
            };
            if let Err(error) = asked {
                return translate(error).into();
            }
        }
    }

    /// How long opening the next stream may take. A single member has no other to switch to, so it gets the longest
    /// time.
    fn patience(&self) -> Duration {
        if self.members.count() > 1 { self.patience } else { LONGEST_SILENCE }
    }

    /// Requests progress. etcd reports none to a watch whose first revision has not been written, nor to one that is
    /// catching up (etcd: storage/mvcc, progressIfSync). In the first case the answer to a ping serves instead.
    async fn ask(
        &mut self,
        liveness: &mut StreamLiveness,
        requests: &mut WatchRequestSender,
    ) -> Result<(), Error> {
        self.state.asked(*self.progress.borrow_and_update());
        liveness.expect(self.patience);
        requests.request_progress().await?;
        if self.state.may_report() { Ok(()) } else { self.ping(liveness, requests).await }
    }

    async fn ping(
        &self,
        liveness: &mut StreamLiveness,
        requests: &mut WatchRequestSender,
    ) -> Result<(), Error> {
        match &self.range {
            Some(range) => liveness.ping(requests, range, self.state.round()).await,
            None => Ok(()),
        }
    }

    /// Opens a stream on a connection of its own.
    async fn open(&self, after: Revision) -> Result<(WatchRequestSender, WatchResponseStream)> {
        let Some((start, end)) = self.range.clone() else {
            return Err(BackendError::Unavailable("a watch of no keys".to_owned()));
        };
        let options = WatchOptions::new()
            .with_range(end)
            .with_start_revision(self.revision_offset.signed(after).saturating_add(1))
            .with_prev_key()
            .with_progress_notify()
            .with_fragment();
        let client = self.members.watch_client(self.chosen).await?;
        let mut client = client.max_decoding_message_size(LARGEST_MESSAGE);
        let stream = client.watch(start, Some(options)).await.map_err(translate)?;
        Ok(stream.split())
    }

    /// Passes a response on. Returns `true` if it answered a round of progress.
    async fn deliver(
        &mut self,
        response: Result<Option<WatchResponse>>,
        liveness: &mut StreamLiveness,
        items: &mpsc::Sender<WatchItem>,
    ) -> Result<bool, StreamEnd> {
        let ended = || BackendError::Unavailable("etcd ended the stream".to_owned());
        let response = response?.ok_or_else(ended)?.0;
        let before = self.state.answered();
        if let Some(item) = self.state.receive(response, liveness)? {
            self.patience = SILENCE;
            items.send(item).await.map_err(|_| StreamEnd::Gone)?;
        }
        Ok(self.state.answered() != before)
    }
}
