//! A watch that outlives its connections.

use std::ops::Range;
use std::time::Duration;

use etcd_client::{Error, WatchOptions, WatchRequestSender, WatchResponse, WatchResponseStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::error::translate;
use super::keys::Prefix;
use super::members::{MemberChoice, Members};
use super::revision_offset::{self, RevisionOffset};
use super::stream_liveness::StreamLiveness;
use super::watch_state::WatchState;
use crate::backend::{BackendError, Result, Revision, WatchItem};

/// Batches that may wait for the receiver; beyond it the stream is not read, and etcd holds the rest. A batch may hold
/// megabytes. Caches have one or two watches each, and no client has one.
const CHANNEL: usize = 4;
/// The first pause before a broken stream is opened again; it doubles up to the longest.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long opening a stream may take, and how long it may be silent when something was asked on it. It doubles with each
/// that was.
const SILENCE: Duration = Duration::from_secs(2);
/// The longest.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);
/// etcd answers a request for progress only when the watch has caught up, and else forgets it: ask again.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// How often it is asked without anybody asking. etcd tells of its own accord every ten minutes alone, and a stream that
/// breaks goes on from where it was told last: that must not be before what is forgotten after five (`compaction`).
const KEEP_UP: Duration = Duration::from_secs(10);
/// Events come in fragments of about etcd's largest request; one that large is not etcd's.
const LARGEST_MESSAGE: usize = 256 << 20;

/// One watch.
pub(super) struct Watch {
    members: Members,
    /// The member that the stream is from.
    chosen: MemberChoice,
    /// How long the next stream may be silent when it should answer.
    patience: Duration,
    range: Option<(String, String)>,
    origin: RevisionOffset,
    state: WatchState,
    progress: watch::Receiver<u64>,
}

/// Why a stream is not read on.
enum End {
    /// The receiver of the watch has gone.
    Gone,
    /// Nothing more can be delivered.
    Failed(BackendError),
    /// The stream broke; another one may go on after it.
    Broken(BackendError),
    /// Nothing came that should have; another one may go on.
    Silent,
}

impl From<BackendError> for End {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Compacted { .. } | BackendError::Corrupt(_) => End::Failed(error),
            other => End::Broken(other),
        }
    }
}

impl Watch {
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

    /// A watch of the key by which a prefix keeps house.
    pub fn of_record(
        members: Members,
        prefix: Prefix,
        after: Revision,
        progress: watch::Receiver<u64>,
    ) -> Self {
        let key = prefix.key(revision_offset::KEY);
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
        let (origin, round) = (prefix.origin, *progress.borrow());
        Self {
            chosen: members.chosen(),
            members,
            patience: SILENCE,
            range,
            origin,
            state: WatchState::new(prefix, after, round),
            progress,
        }
    }

    /// Runs in a task of its own until the receiver is dropped or the watch fails.
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
        if let Err(error) = self.origin.check_start(self.state.restart()) {
            let _ = items.send(WatchItem::Failed(error)).await;
            return;
        }
        let mut pause = PAUSE;
        loop {
            let mut lived = false;
            match self.stream(&items, &mut lived).await {
                End::Gone => return,
                End::Failed(error) => {
                    let _ = items.send(WatchItem::Failed(error)).await;
                    return;
                }
                End::Broken(error) => {
                    self.members.contact().failed(&error);
                    match lived {
                        true => tracing::info!(%error, "a watch of etcd broke, and is opened again"),
                        false => {
                            tracing::debug!(%error, "a watch of etcd cannot be opened, and is tried again")
                        }
                    }
                }
                End::Silent => {
                    self.patience = (self.patience * 2).min(LONGEST_SILENCE);
                    match lived {
                        true => tracing::info!("a watch of etcd is silent, and is opened again"),
                        false => tracing::debug!("a watch of etcd is silent, and is opened again"),
                    }
                }
            }
            pause = if lived { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            self.members.leave(self.chosen);
            tokio::time::sleep(pause).await;
        }
    }

    /// Delivers from one stream until it ends.
    async fn stream(&mut self, items: &mpsc::Sender<WatchItem>, lived: &mut bool) -> End {
        let after = self.state.restart();
        let mut choices = self.members.choices();
        self.chosen = *choices.borrow_and_update();
        let (mut requests, mut responses) =
            match tokio::time::timeout(self.patience(), self.open(after)).await {
                Ok(Ok(opened)) => opened,
                Ok(Err(error)) => return error.into(),
                Err(_) => return End::Silent,
            };
        let (mut ask_at, mut keep_up_at) = (Instant::now(), Instant::now() + KEEP_UP);
        let mut liveness = StreamLiveness::default();
        loop {
            let owed = self.state.owes(*self.progress.borrow());
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
                () = liveness.lost(), if self.members.count() > 1 => return End::Silent,
                () = liveness.due() => self.ping(&mut liveness, &mut requests).await,
                // Somebody found the member wanting: does it still answer here? A silent connection tells nothing.
                Ok(()) = choices.changed() => {
                    liveness.expect(self.patience);
                    self.ping(&mut liveness, &mut requests).await
                }
                () = tokio::time::sleep_until(ask_at), if owed => {
                    ask_at = Instant::now() + ASK_AGAIN;
                    self.ask(&mut liveness, &mut requests).await
                }
                () = tokio::time::sleep_until(keep_up_at) => {
                    keep_up_at = Instant::now() + KEEP_UP;
                    self.ask(&mut liveness, &mut requests).await
                }
                changed = self.progress.changed(), if !owed => {
                    if changed.is_err() {
                        return End::Failed(BackendError::Unavailable("the store has been closed".to_owned()));
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

    /// How long the next stream may take to be opened. A single member has no other beside it.
    fn patience(&self) -> Duration {
        if self.members.count() > 1 { self.patience } else { LONGEST_SILENCE }
    }

    /// Asks for progress. etcd tells none to a watch whose first revision has not come, nor to one that is catching up
    /// (etcd: storage/mvcc, progressIfSync); in the first case the answer to a ping tells as much.
    async fn ask(
        &mut self,
        liveness: &mut StreamLiveness,
        requests: &mut WatchRequestSender,
    ) -> Result<(), Error> {
        self.state.asked(*self.progress.borrow_and_update());
        liveness.expect(self.patience);
        requests.request_progress().await?;
        if self.state.may_be_told() { Ok(()) } else { self.ping(liveness, requests).await }
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
            .with_start_revision(self.origin.signed(after).saturating_add(1))
            .with_prev_key()
            .with_progress_notify()
            .with_fragment();
        let client = self.members.watch_client(self.chosen).await?;
        let mut client = client.max_decoding_message_size(LARGEST_MESSAGE);
        let stream = client.watch(start, Some(options)).await.map_err(translate)?;
        Ok(stream.split())
    }

    /// Passes a response on; `true` if it answered a round of progress.
    async fn deliver(
        &mut self,
        response: Result<Option<WatchResponse>>,
        liveness: &mut StreamLiveness,
        items: &mpsc::Sender<WatchItem>,
    ) -> Result<bool, End> {
        let ended = || BackendError::Unavailable("etcd ended the stream".to_owned());
        let response = response?.ok_or_else(ended)?.0;
        let before = self.state.answered();
        if let Some(item) = self.state.receive(response, liveness)? {
            self.patience = SILENCE;
            items.send(item).await.map_err(|_| End::Gone)?;
        }
        Ok(self.state.answered() != before)
    }
}
