//! Objects by name. Each is written to SQLite before any client sees it.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anyhow::{Context, Result};
use bytes::Bytes;
use parking_lot::RwLock;
use rusqlite::Connection;
use serde_json::Value;
use tokio::sync::{broadcast, oneshot};

/// Most writes of one transaction, and most events that a watcher may be behind.
const BATCH: usize = 512;
/// Most writes that wait; above any number of clients that the benchmark has.
const QUEUE: usize = 4096;

/// An object to write.
pub struct ObjectWrite {
    /// The object.
    pub object: Value,
    /// Whether it must not exist; otherwise the revision that it names must be its newest.
    pub new: bool,
}

/// A part of all objects, in the order of names.
pub struct ObjectPage {
    /// The newest revision.
    pub revision: u64,
    /// The objects.
    pub items: Vec<Bytes>,
    /// The last name, if there may be more behind it.
    pub next: Option<String>,
}

/// The objects.
pub struct Store {
    writes: SyncSender<(ObjectWrite, oneshot::Sender<Option<Bytes>>)>,
    known: Arc<RwLock<KnownObjects>>,
    events: broadcast::Sender<Bytes>,
}

/// What is durable.
#[derive(Default)]
struct KnownObjects {
    revision: u64,
    objects: BTreeMap<String, (u64, Bytes)>,
}

/// A write that waits for its commit.
struct PendingCommit {
    name: String,
    revision: u64,
    bytes: Bytes,
}

/// What one transaction writes.
#[derive(Default)]
struct CommitBatch {
    names: HashSet<String>,
    writes: Vec<PendingCommit>,
}

impl Store {
    /// An empty one in a new file.
    pub fn create(file: &Path) -> Result<Self> {
        let connection = Connection::open(file)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE log (revision INTEGER PRIMARY KEY, key TEXT NOT NULL, value BLOB NOT NULL) STRICT;
             CREATE INDEX log_by_key ON log (key, revision);",
        )?;
        let (writes, queue) = sync_channel(QUEUE);
        let (events, _) = broadcast::channel(BATCH);
        let known = Arc::new(RwLock::new(KnownObjects { revision: 1, ..KnownObjects::default() }));
        let mut writer = StoreWriter { connection, known: known.clone(), events: events.clone() };
        std::thread::Builder::new().name("writer".into()).spawn(move || {
            if let Err(error) = writer.run(&queue) {
                eprintln!("the writer stopped: {error:#}");
            }
        })?;
        Ok(Self { writes, known, events })
    }

    /// The object as it was written; `None` if its revision was stale or its name taken.
    pub async fn write(&self, write: ObjectWrite) -> Option<Bytes> {
        let (reply, answer) = oneshot::channel();
        self.writes.try_send((write, reply)).ok()?;
        answer.await.ok()?
    }

    /// An object.
    pub fn get(&self, name: &str) -> Option<Bytes> {
        self.known.read().objects.get(name).map(|(_, bytes)| bytes.clone())
    }

    /// Up to so many objects behind a name.
    pub fn page(&self, limit: Option<usize>, after: Option<&str>) -> ObjectPage {
        let known = self.known.read();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = known.objects.range::<str, _>((from, Bound::Unbounded));
        let (mut items, mut last) = (Vec::new(), None);
        for (name, (_, bytes)) in behind.take(limit.unwrap_or(usize::MAX)) {
            items.push(bytes.clone());
            last = Some(name);
        }
        let next = last.filter(|_| Some(items.len()) == limit).cloned();
        ObjectPage { revision: known.revision, items, next }
    }

    /// Events from now on, a line each.
    pub fn events(&self) -> broadcast::Receiver<Bytes> {
        self.events.subscribe()
    }
}

struct StoreWriter {
    connection: Connection,
    known: Arc<RwLock<KnownObjects>>,
    events: broadcast::Sender<Bytes>,
}

impl StoreWriter {
    fn run(&mut self, queue: &Receiver<(ObjectWrite, oneshot::Sender<Option<Bytes>>)>) -> Result<()> {
        while let Ok(first) = queue.recv() {
            let batch: Vec<_> = std::iter::once(first).chain(queue.try_iter().take(BATCH - 1)).collect();
            let (mut answers, mut written) = (Vec::with_capacity(batch.len()), CommitBatch::default());
            let known = self.known.read().revision;
            for (write, reply) in batch {
                let made = self.accept(write, known, &mut written)?;
                answers.push((reply, made));
            }
            self.commit(&written.writes)?;
            self.publish(written.writes);
            answers.into_iter().for_each(|(reply, made)| drop(reply.send(made)));
        }
        Ok(())
    }

    /// Gives a write its revision. Of two to one name in a batch the second has a stale revision or a taken name.
    fn accept(
        &self,
        ObjectWrite { mut object, new }: ObjectWrite,
        known: u64,
        batch: &mut CommitBatch,
    ) -> Result<Option<Bytes>> {
        let metadata = object.get_mut("metadata").context("an object without metadata")?;
        let name = metadata["name"].as_str().context("an object without a name")?.to_owned();
        let named = metadata["resourceVersion"].as_str().and_then(|named| named.parse().ok());
        let newest = self.known.read().objects.get(&name).map(|(revision, _)| *revision);
        if batch.names.contains(&name) || newest.is_some() == new || (!new && named != newest) {
            return Ok(None);
        }
        let revision = known + batch.writes.len() as u64 + 1;
        metadata["resourceVersion"] = revision.to_string().into();
        let bytes = Bytes::from(serde_json::to_vec(&object)?);
        batch.names.insert(name.clone());
        batch.writes.push(PendingCommit { name, revision, bytes: bytes.clone() });
        Ok(Some(bytes))
    }

    fn commit(&mut self, written: &[PendingCommit]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO log VALUES (?1, ?2, ?3)")?;
            for PendingCommit { name, revision, bytes } in written {
                insert.execute((i64::try_from(*revision)?, name, &bytes[..]))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn publish(&self, written: Vec<PendingCommit>) {
        let mut known = self.known.write();
        for PendingCommit { name, revision, bytes } in written {
            // There may be no watcher.
            let event = [br#"{"type":"ADDED","object":"#, &bytes[..], b"}\n"].concat();
            let _ = self.events.send(event.into());
            known.revision = revision;
            known.objects.insert(name, (revision, bytes));
        }
    }
}
