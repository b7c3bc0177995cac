//! Pages of a list, read in bounded batches at one revision.

use std::ops::Range;
use std::sync::Arc;

use super::{Store, backend_revision, fresh_enough};
use crate::backend::{BackendError, KeyValue, RangeResult, Revision};
use crate::scope::next_key;
use crate::storage::{MemoryBudget, Page, PageOptions, ReadAt, Scope, StorageError, Stored, UnlimitedMemory};
use crate::work_meter::WorkMeter;

/// Maximum number of pairs read from the backend at once (Kubernetes: maxLimit is 10000).
const LARGEST_BATCH: usize = 2_500;
/// Maximum number of pairs of the first batch, whose size is unknown.
const FIRST_BATCH: usize = 50;
/// Approximate maximum of bytes read from the backend at once.
const LARGEST_BATCH_BYTES: usize = 8 << 20;
/// Fewest pairs of a batch if a selection may drop most of them, or if they are large.
const SMALLEST_BATCH: usize = 50;

/// Reads one page. (Kubernetes: etcd3/store.go, GetList.)
pub(super) async fn page(
    store: &Store,
    scope: &Scope,
    options: &PageOptions,
    memory: &mut dyn MemoryBudget,
) -> Result<Page, StorageError> {
    Ok(read(ListReader::start(store, scope, options, memory), options.at).await?.finish())
}

async fn read(mut reader: ListReader<'_>, at: ReadAt) -> Result<ListReader<'_>, StorageError> {
    loop {
        reader.make_room(reader.expected()).await?;
        let result = reader.batch().await?;
        reader.fill(&result.items).await?;
        if reader.revision.is_none() {
            fresh_enough(at, result.revision)?;
        }
        reader.pin(result.revision);
        if reader.take(&result.items, result.count).await? {
            return Ok(reader);
        }
    }
}

struct ListReader<'a> {
    store: &'a Store,
    scope: &'a Scope,
    limit: usize,
    batch: usize,
    keys: Range<String>,
    at: Option<Revision>,
    revision: Option<Revision>,
    items: Vec<Arc<Stored>>,
    next: Option<String>,
    remaining: u64,
    work: WorkMeter,
    /// Average bytes of a pair in the last batch.
    average: usize,
    memory: &'a mut dyn MemoryBudget,
    /// Bytes that `memory` has granted and that are not used yet.
    spare: usize,
    /// Set when a cache is filled: the damaged values, which then do not fail the read. The cache keeps the objects,
    /// so they are packed.
    filling: Option<Damaged>,
}

impl<'a> ListReader<'a> {
    fn start(
        store: &'a Store,
        scope: &'a Scope,
        options: &PageOptions,
        memory: &'a mut dyn MemoryBudget,
    ) -> Self {
        let mut keys = scope.keys(&store.prefix);
        if let Some(start) = &options.start {
            keys.start = keys.start.max(store.absolute(start));
        }
        Self {
            store,
            scope,
            limit: options.limit,
            batch: first_batch(options.limit, scope.matches.is_some()),
            at: backend_revision(options.at),
            revision: None,
            keys,
            items: Vec::new(),
            next: None,
            remaining: 0,
            work: WorkMeter::default(),
            average: 0,
            memory,
            spare: 0,
            filling: None,
        }
    }

    /// Returns about how many bytes the next batch has; 0 for the first one.
    fn expected(&self) -> usize {
        let most = usize::try_from(self.remaining).unwrap_or(usize::MAX);
        self.batch.min(most).saturating_mul(self.average)
    }

    /// Requests memory so that `bytes` are available in total.
    async fn make_room(&mut self, bytes: usize) -> Result<(), StorageError> {
        if let Some(missing) = bytes.checked_sub(self.spare).filter(|missing| *missing > 0) {
            self.memory.take(missing).await.map_err(StorageError::Refused)?;
            self.spare = bytes;
        }
        Ok(())
    }

    /// Accounts for the memory of a batch.
    async fn fill(&mut self, batch: &[KeyValue]) -> Result<(), StorageError> {
        let bytes: usize = batch.iter().map(|pair| pair.value.len()).sum();
        self.average = bytes / batch.len().max(1);
        self.make_room(bytes).await?;
        self.spare -= bytes;
        Ok(())
    }

    /// Reads the next batch. A list without a limit knows from the first batch how many objects are left: counting
    /// them for each batch would take time quadratic in their number.
    async fn batch(&self) -> Result<RangeResult, StorageError> {
        let (backend, keys, batch) = (&self.store.backend, self.keys.clone(), self.batch);
        match self.revision {
            Some(revision) if self.limit == 0 => {
                let items = backend.page(keys, batch, Some(revision)).await?;
                Ok(RangeResult { revision, count: self.remaining, items })
            }
            _ => Ok(backend.range(keys, batch, self.at).await?),
        }
    }

    /// Fixes the revision of later batches to that of the first one.
    fn pin(&mut self, revision: Revision) {
        self.revision.get_or_insert(revision);
        self.at = self.revision;
    }

    /// Adds a batch to the page. Returns `true` when the page is complete.
    async fn take(&mut self, batch: &[KeyValue], count: u64) -> Result<bool, StorageError> {
        let mut taken = 0_usize;
        for pair in batch {
            if self.full() {
                break;
            }
            taken += 1;
            self.work.worked(pair.value.len()).await;
            let Some(stored) = self.stored(pair)? else { continue };
            if !self.scope.selects(&stored) {
                self.spare += pair.value.len();
                continue;
            }
            // A page is sent and dropped, so only objects for a cache are packed.
            if self.filling.is_some() {
                stored.pack(self.store.interner());
            }
            self.items.push(stored);
        }
        let Some(last) = taken.checked_sub(1).and_then(|last| batch.get(last)) else { return Ok(true) };
        self.remaining = count.saturating_sub(taken as u64);
        if self.remaining == 0 {
            return Ok(true);
        }
        if self.full() {
            self.next = Some(next_key(self.store.relative(&last.key)?));
            return Ok(true);
        }
        self.keys.start = next_key(&last.key);
        self.batch = next_batch(self.batch, self.average);
        Ok(false)
    }

    /// Returns the object of a pair, not decoded yet: most readers need only its bytes. Returns `None` for a damaged
    /// value while a cache is filled.
    fn stored(&mut self, pair: &KeyValue) -> Result<Option<Arc<Stored>>, StorageError> {
        match (self.store.decode(pair), &mut self.filling) {
            (Err(StorageError::Backend(BackendError::Corrupt(why))), Some(damaged)) => {
                tracing::error!(why, revision = pair.mod_revision.0, "an object is damaged");
                damaged.push((self.store.relative(&pair.key)?.to_owned(), why));
                Ok(None)
            }
            (stored, _) => stored.map(Some),
        }
    }

    fn full(&self) -> bool {
        self.limit > 0 && self.items.len() >= self.limit
    }

    fn finish(self) -> Page {
        let known = self.next.is_some() && self.scope.matches.is_none();
        Page {
            items: self.items.into(),
            revision: self.revision.unwrap_or_default(),
            remaining: known.then_some(self.remaining),
            next: self.next,
        }
    }
}

fn first_batch(limit: usize, selected: bool) -> usize {
    let least = if selected { SMALLEST_BATCH } else { 1 };
    if limit == 0 { FIRST_BATCH } else { limit.clamp(least, FIRST_BATCH) }
}

/// Returns twice the size of the last batch, limited so that pairs of `bytes` each do not exceed what is read at
/// once.
fn next_batch(last: usize, bytes: usize) -> usize {
    let most = LARGEST_BATCH_BYTES / bytes.max(1);
    (last * 2).min(LARGEST_BATCH).min(most.max(SMALLEST_BATCH))
}

/// Keys of the values that cannot be decoded, and why.
type Damaged = Vec<(String, String)>;

/// Reads all objects of a resource at its latest revision. Returns the damaged values separately, because one of them
/// must not keep all others from being served.
pub(crate) async fn readable(store: &Store) -> Result<(Vec<Arc<Stored>>, Revision, Damaged), StorageError> {
    let options = PageOptions { at: ReadAt::Latest, limit: 0, start: None };
    let (scope, mut memory) = (Scope::all(), UnlimitedMemory);
    let reader =
        ListReader { filling: Some(Vec::new()), ..ListReader::start(store, &scope, &options, &mut memory) };
    let reader = read(reader, options.at).await?;
    Ok((reader.items, reader.revision.unwrap_or_default(), reader.filling.unwrap_or_default()))
}

/// Reads the current objects of a scope at one revision, for the start of a watch.
pub(crate) async fn everything(
    store: &Store,
    scope: &Scope,
    at: ReadAt,
) -> Result<(Vec<Arc<Stored>>, Revision), StorageError> {
    let options = PageOptions { at, limit: 0, start: None };
    let mut memory = UnlimitedMemory;
    let reader = read(ListReader::start(store, scope, &options, &mut memory), at).await?;
    Ok((reader.items, reader.revision.unwrap_or_default()))
}
