//! The one thread that writes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use drydock_storage::backend::{BackendError, Result, Revision, Shortage, WriteOutcome};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use crate::SqliteOptions;
use crate::apply::PendingTransaction;
use crate::checkpoints;
use crate::compaction::{self, Compaction};
use crate::disk_full::DiskFull;
use crate::early_compaction::EarlyCompaction;
use crate::error::{StoreFault, translate};
use crate::failpoints;
use crate::feed::EventFeed;
use crate::file::OpenFiles;
use crate::lock::Lock;
use crate::queue::{QueuedCommand, WriterCommand, next_batch, size};
use crate::quota::StoreQuota;

/// Adds to a `NoSpace` error that writes resume without a restart.
fn goes_on(error: BackendError) -> BackendError {
    match error {
        BackendError::NoSpace(why) => BackendError::NoSpace(format!("{why}, and writes go on by themselves")),
        other => other,
    }
}

/// The sending end of the queue. Dropping it lets the thread finish the queued commands, and waits for it.
pub(super) struct WriterHandle {
    queue: Option<SyncSender<QueuedCommand>>,
    full: DiskFull,
    quota: StoreQuota,
    fault: StoreFault,
    thread: Option<JoinHandle<()>>,
}

impl WriterHandle {
    /// Starts the thread. It holds `lock` as long as it runs.
    pub fn start(
        mut connection: Connection,
        lock: Arc<Lock>,
        files: OpenFiles,
        feed: Arc<EventFeed>,
        options: &SqliteOptions,
    ) -> Result<Self> {
        let (sender, receiver) = sync_channel(options.queue);
        let (full, fault) = (DiskFull::default(), StoreFault::default());
        checkpoints::start(&mut connection, options.checkpoint_pages, lock.clone(), fault.clone())
            .map_err(translate)?;
        let quota = StoreQuota::open(&connection, options.quota)?;
        let revision = compaction::newest(&connection)?;
        let writer = WriterThread {
            revision: revision.0,
            compaction: Compaction::load(&connection)?,
            connection,
            feed,
            full: full.clone(),
            quota: quota.clone(),
            early_compaction: EarlyCompaction::new(
                quota.clone(),
                options.retention,
                Instant::now(),
                revision,
            ),
            fault: fault.clone(),
            files,
            lock,
        };
        let run = move || writer.run(&receiver);
        let spawned = std::thread::Builder::new().name("sqlite-writer".to_owned()).spawn(run);
        let thread = spawned.map_err(|error| BackendError::Unavailable(error.to_string()))?;
        Ok(Self { queue: Some(sender), full, quota, fault, thread: Some(thread) })
    }

    /// Returns why writes are refused at present; `None` if they are accepted.
    pub fn refuses(&self) -> Option<String> {
        self.fault.why().or_else(|| self.full.why()).or_else(|| self.quota.why())
    }

    /// Returns what is left if space is short.
    pub fn shortage(&self) -> Option<Shortage> {
        self.quota.shortage()
    }

    /// Returns why the thread has stopped writing; `None` while it writes.
    pub fn ended(&self) -> Option<String> {
        let runs = || self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        let fault = || (!runs()).then(|| "the writer thread panicked".to_owned());
        self.fault.why().or_else(fault)
    }

    /// Queues a command and waits for its answer. Fails at once if the queue is full.
    pub async fn ask(&self, command: WriterCommand) -> Result<WriteOutcome> {
        // The thread answers every command that it has begun, so a command without an answer was not carried out.
        let fault = || BackendError::Unavailable("the writer has stopped".to_owned());
        let stopped = || self.fault.refusal().unwrap_or_else(fault);
        let (reply, answer) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue.try_send(QueuedCommand { command, reply }).map_err(|error| match error {
            TrySendError::Full(_) => BackendError::Overloaded,
            TrySendError::Disconnected(_) => stopped(),
        })?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }
}

impl Drop for WriterHandle {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct WriterThread {
    connection: Connection,
    revision: u64,
    compaction: Compaction,
    feed: Arc<EventFeed>,
    full: DiskFull,
    quota: StoreQuota,
    early_compaction: EarlyCompaction,
    fault: StoreFault,
    files: OpenFiles,
    /// Declared after the connection, because fields are dropped in this order: no other process may open the store
    /// before the connection is closed.
    lock: Arc<Lock>,
}

impl WriterThread {
    fn run(mut self, queue: &Receiver<QueuedCommand>) {
        while !self.fault.is_recorded()
            && let Some(batch) = next_batch(queue, self.patience())
        {
            if !batch.is_empty() {
                self.commit(batch);
            }
            if !self.fault.is_recorded() {
                self.between_writes();
            }
        }
        if self.fault.is_recorded() {
            checkpoints::leave_log(&self.connection);
        }
    }

    fn between_writes(&mut self) {
        let now = Instant::now();
        self.full.retest(&mut self.connection, now);
        if let Some(sample) = self.early_compaction.due(now, Revision(self.revision)) {
            match self.compaction.move_to(&mut self.connection, &self.lock, sample.revision) {
                Ok(()) => self.early_compaction.met(sample),
                Err(error) => tracing::warn!(%error, "early compaction failed although space is low"),
            }
        }
        if self.compaction.pending() {
            self.compact();
        }
    }

    /// Returns how long to wait for a command; `None` means without limit.
    fn patience(&self) -> Option<Duration> {
        match self.compaction.pending() {
            true => Some(Duration::ZERO),
            false => {
                let now = Instant::now();
                let (full, early_compaction) = (self.full.patience(now), self.early_compaction.patience(now));
                full.into_iter().chain(early_compaction).min()
            }
        }
    }

    /// Commits all commands of the batch in one durable transaction, or fails all of them.
    fn commit(&mut self, batch: Vec<QueuedCommand>) {
        let applied = self.check_files(&batch).and_then(|()| self.apply(&batch)).map_err(goes_on);
        self.note(&batch, &applied);
        match applied {
            Ok((pending, answers)) => {
                self.compaction = pending.compaction;
                self.revision = pending.revision;
                self.early_compaction.wrote(&pending.events);
                self.feed.publish(pending.events, pending.revision);
                failpoints::pass("published");
                batch.into_iter().zip(answers).for_each(|(command, answer)| command.answer(answer));
            }
            Err(error) => batch.into_iter().for_each(|command| command.answer(Err(error.clone()))),
        }
    }

    /// Records a fault, and fails, if a file of the store has lost its name: later writes to it could not be found.
    /// First copies the log into the file, wherever the file is now: it is complete there, and its log can do no harm
    /// to another file of its name.
    fn check_files(&mut self, batch: &[QueuedCommand]) -> Result<()> {
        // Compactions are queued every few minutes, even without writes.
        let is_compaction = |command: &QueuedCommand| matches!(command.command, WriterCommand::Compact(_));
        let Some(lost) = self.files.replaced(batch.iter().any(is_compaction)) else { return Ok(()) };
        if let Err(error) = checkpoints::empty_log(&self.connection).map_err(|error| self.lock.note(error)) {
            tracing::error!(%error, "WAL checkpoint failed");
        }
        self.fault.record(format!(
            "{} was moved, removed or replaced while the server had it open: put it back if it was moved, restore a \
             backup if the store is gone, and start the server again",
            lost.display()
        ));
        self.fault.refusal().map_or(Ok(()), Err)
    }

    /// Records whether the transaction found space.
    fn note(
        &self,
        batch: &[QueuedCommand],
        applied: &Result<(PendingTransaction, Vec<Result<WriteOutcome>>)>,
    ) {
        let bytes = match applied {
            // This runs for every write, so nothing is counted unless the disk is known to be full.
            Ok(_) if !self.full.is_known() => return,
            Ok((pending, _)) => {
                pending.events.iter().map(|event| size(&event.key, event.value.as_ref())).sum()
            }
            Err(_) => batch.iter().map(QueuedCommand::bytes).sum(),
        };
        self.full.note(bytes, applied, Instant::now());
    }

    fn apply(&mut self, batch: &[QueuedCommand]) -> Result<(PendingTransaction, Vec<Result<WriteOutcome>>)> {
        failpoints::pass("before-begin");
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(translate)?;
        let mut pending = PendingTransaction::new(
            self.revision,
            self.compaction,
            self.quota.transaction_space(&transaction)?,
        );
        let mut answers = Vec::with_capacity(batch.len());
        for command in batch {
            answers.push(match &command.command {
                WriterCommand::Write(write) => pending.write(&transaction, write)?,
                WriterCommand::Compact(at) => pending.compact(&transaction, *at)?,
            });
        }
        failpoints::pass("applied");
        transaction.commit().map_err(|error| self.lock.note(error))?;
        failpoints::pass("committed");
        Ok((pending, answers))
    }

    fn compact(&mut self) {
        let compacted = self.compaction.step(&mut self.connection, &self.lock, self.early_compaction.rows());
        if let Err(error) = compacted.and_then(|()| self.quota.recheck(&self.connection)) {
            tracing::warn!(%error, "compaction failed; retrying at the next interval");
            self.compaction.put_off();
        }
    }
}
