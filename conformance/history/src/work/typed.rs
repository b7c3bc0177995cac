//! A client of typed storage: the store, or the cache over it.

use std::sync::Arc;

use drydock_machinery::Object;
use drydock_storage::backend::{Guard, Revision, WriteContext, prefix_range};
use drydock_storage::storage::{
    NextState, Page, PageOptions, ReadAt, Replaced, Scope, Storage, StorageError, Stored, UnlimitedMemory,
};
use rand::RngExt;
use rand::rngs::StdRng;

use super::{Layer, any_key, expected, recent};
use crate::context::{HistoryContext, StoreServer, TimedFailure};
use crate::object::{GUARD, PREFIX, object, value_of};
use crate::record::{Moment, Pair, Present, RecordedOperation, RecordedOutcome, RecordedWrite, Rev, Value};

pub async fn run(context: Arc<HistoryContext>, which: usize, layer: Layer, mut rng: StdRng) {
    while !context.over.is_cancelled() {
        let server = tokio::select! {
            server = context.server(which) => server,
            () = context.over.cancelled() => return,
        };
        let by = if layer == Layer::Cache { "a client of the cache" } else { "a client of the store" };
        let client = TypedClient { context: &context, server: &server, storage: storage(&server, layer), by };
        match rng.random_range(0..100) {
            0..15 => client.create(&mut rng).await,
            15..60 => client.replace(&mut rng).await,
            60..82 => client.get(&mut rng).await,
            _ => client.list(&mut rng).await,
        }
    }
}

/// The layer to ask.
pub fn storage(server: &StoreServer, layer: Layer) -> &Arc<dyn Storage> {
    match layer {
        Layer::Store => &server.store,
        Layer::Cache => &server.cache,
    }
}

/// An object as it was delivered. One without its number gets the number 0, which is wrong for it.
pub fn pair_of(stored: &Stored) -> Pair {
    let value = value_of(&stored.object().0).unwrap_or_default();
    Pair { key: format!("{PREFIX}{}", stored.key), value, modified: stored.revision.0, created: None }
}

struct TypedClient<'a> {
    context: &'a HistoryContext,
    server: &'a StoreServer,
    storage: &'a Arc<dyn Storage>,
    by: &'static str,
}

impl TypedClient<'_> {
    async fn create(&self, rng: &mut StdRng) {
        let (name, value, guard) = (any_key(rng), self.context.recorder.value(), self.guard(rng));
        let called = self.context.recorder.stamp();
        let context = WriteContext { guard: guard.as_ref(), ..WriteContext::default() };
        let created = self.storage.create(&name, object(&name, value), context);
        let outcome = match self.server.ask(rng, created).await {
            Some(Ok(stored)) => RecordedOutcome::Committed(stored.revision.0),
            Some(Err(failed)) => self.failed(&failed.error),
            None => RecordedOutcome::Unknown,
        };
        self.note(called, &name, None, Some(value), guard, outcome);
    }

    async fn replace(&self, rng: &mut StdRng) {
        let (name, guard) = (any_key(rng), self.guard(rng));
        let Some(present) = self.present(&name, rng).await else { return };
        let value = rng.random_ratio(3, 4).then(|| self.context.recorder.value());
        let next = match value {
            Some(value) => NextState::Write(object(&name, value)),
            None => NextState::Delete(Object::clone(&present.object())),
        };
        let called = self.context.recorder.stamp();
        let context = WriteContext { guard: guard.as_ref(), ..WriteContext::default() };
        let replaced = self.storage.replace(&name, &present, next, context);
        let outcome = match self.server.ask(rng, replaced).await {
            // Each next state differs from the present one.
            Some(Ok(Replaced::Updated(stored))) if stored.revision == present.revision => {
                RecordedOutcome::Refused
            }
            Some(Ok(Replaced::Updated(stored))) => RecordedOutcome::Committed(stored.revision.0),
            Some(Ok(Replaced::Conflict(newest))) => {
                RecordedOutcome::Conflict(Present::Version(newest.map(|newest| newest.revision.0)))
            }
            Some(Err(failed)) => self.failed(&failed.error),
            None => RecordedOutcome::Unknown,
        };
        self.note(called, &name, Some(present.revision.0), value, guard, outcome);
    }

    /// The state to replace: one that is read, or for two in three one that only has the version that is expected.
    async fn present(&self, name: &str, rng: &mut StdRng) -> Option<Arc<Stored>> {
        if rng.random_ratio(2, 3) {
            let version = expected(self.context, &format!("{PREFIX}{name}"), rng)?;
            return Some(Arc::new(Stored::new(name.to_owned(), object(name, Value::MAX), Revision(version))));
        }
        let any = self.storage.get(name, ReadAt::NotOlderThan(Revision(0)));
        self.server.ask(rng, any).await?.ok()
    }

    fn guard(&self, rng: &mut StdRng) -> Option<Guard> {
        let revision = self.context.known(GUARD).filter(|_| rng.random_ratio(1, 6))?;
        Some(Guard { key: GUARD.to_owned(), revision: Revision(revision) })
    }

    fn failed(&self, error: &StorageError) -> RecordedOutcome {
        match error {
            StorageError::AlreadyExists => RecordedOutcome::Conflict(Present::Something),
            StorageError::GuardFailed => RecordedOutcome::Guarded,
            _ => {
                self.context.recorder.count("writes that failed");
                RecordedOutcome::Unknown
            }
        }
    }

    fn note(
        &self,
        called: Moment,
        name: &str,
        expected: Option<Rev>,
        value: Option<Value>,
        guard: Option<Guard>,
        outcome: RecordedOutcome,
    ) {
        let key = format!("{PREFIX}{name}");
        match &outcome {
            RecordedOutcome::Committed(at) => self.context.saw(&key, value.map(|_| *at)),
            RecordedOutcome::Conflict(Present::Version(version)) => self.context.saw(&key, *version),
            _ => {}
        }
        let guard = guard.map(|guard| (guard.key, guard.revision.0));
        let write = RecordedWrite { key, expected, value, guard, outcome };
        self.context.recorder.op(self.by, called, RecordedOperation::Write(write));
    }

    async fn get(&self, rng: &mut StdRng) {
        let name = any_key(rng);
        let key = format!("{PREFIX}{name}");
        let least = recent(self.context, rng);
        let at = [ReadAt::Latest, ReadAt::NotOlderThan(Revision(least)), ReadAt::Exact(Revision(least))]
            [rng.random_range(0..3)];
        let called = self.context.recorder.stamp();
        let found = match self.server.ask(rng, self.storage.get(&name, at)).await {
            Some(Ok(stored)) => Some(pair_of(&stored)),
            Some(Err(TimedFailure { error: StorageError::NotFound, .. })) => None,
            Some(Err(failed)) => return self.refused(called, least, &failed),
            None => return,
        };
        let what = match at {
            ReadAt::Latest => RecordedOperation::Get { key, found, revision: None },
            ReadAt::NotOlderThan(_) => RecordedOperation::NotOlder { key, found, least },
            ReadAt::Exact(_) => {
                let (keys, found) = (key.clone()..format!("{key}\0"), found.into_iter().collect());
                RecordedOperation::Range { keys, found, revision: least, latest: false, least, whole: true }
            }
        };
        self.context.recorder.op(self.by, called, what);
    }

    /// A list, in pages of any size.
    async fn list(&self, rng: &mut StdRng) {
        let (scope, keys) = match rng.random_bool(0.5) {
            true => (Scope::all(), prefix_range(PREFIX)),
            false => (Scope::namespace("ab"), prefix_range(&format!("{PREFIX}ab/"))),
        };
        let least = recent(self.context, rng);
        let at = [ReadAt::Latest, ReadAt::NotOlderThan(Revision(least)), ReadAt::Exact(Revision(least))]
            [rng.random_range(0..3)];
        let mut options = PageOptions { at, limit: rng.random_range(0..5), start: None };
        let called = self.context.recorder.stamp();
        let mut found = Vec::new();
        let (revision, whole) = loop {
            let page =
                match self.server.ask(rng, self.storage.list(&scope, &options, &mut UnlimitedMemory)).await {
                    Some(Ok(page)) => page,
                    Some(Err(failed)) => {
                        let asked = if let ReadAt::Exact(at) = options.at { at.0 } else { least };
                        return self.refused(called, asked, &failed);
                    }
                    None => return,
                };
            found.extend(page.items.iter().map(|stored| pair_of(&stored)));
            self.count_of(&page);
            match page.next {
                Some(next) => {
                    options.at = ReadAt::Exact(page.revision);
                    options.start = Some(next);
                }
                None => break (page.revision.0, true),
            }
        };
        let latest = at == ReadAt::Latest;
        let least = if latest { 0 } else { least };
        let exact = matches!(at, ReadAt::Exact(_));
        // An exact list that is of another revision is not the one that was asked for.
        let least = if exact && revision != least { Rev::MAX } else { least };
        let what = RecordedOperation::Range { keys, found, revision, latest, least, whole };
        self.context.recorder.op(self.by, called, what);
    }

    fn count_of(&self, page: &Page) {
        if page.next.is_some() {
            self.context.recorder.count("pages that had a next one");
        }
    }

    fn refused(&self, called: Moment, asked: Rev, failed: &TimedFailure<StorageError>) {
        match failed.error {
            StorageError::Expired { .. } => {
                self.context.recorder.op(self.by, called, RecordedOperation::Expired { asked });
            }
            _ => self.context.recorder.unanswered(self.by, called, failed.had_its_time(), &failed.error),
        }
    }
}
