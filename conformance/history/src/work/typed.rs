//! A client of typed storage: the store, or the cache over it.

use std::sync::Arc;

use drydock_machinery::{ApiError, Object};
use drydock_storage::backend::{Guard, Revision, WriteContext, prefix_range};
use drydock_storage::storage::{
    Page, PageOptions, ReadAt, Scope, Storage, StorageError, Stored, UnlimitedMemory, UpdateDecision,
};
use rand::RngExt;
use rand::rngs::StdRng;

use super::{Layer, any_key, expected, recent};
use crate::context::{HistoryContext, StoreServer};
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
            15..60 => client.update(&mut rng).await,
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

/// What an update is to do.
#[derive(Clone, Copy)]
struct UpdatePlan {
    /// The version that it insists on, if it insists.
    insists: Option<Option<Rev>>,
    /// What to write; none deletes.
    value: Option<Value>,
}

impl TypedClient<'_> {
    async fn create(&self, rng: &mut StdRng) {
        let (name, value, guard) = (any_key(rng), self.context.recorder.value(), self.guard(rng));
        let called = self.context.recorder.stamp();
        let context = WriteContext { guard: guard.as_ref(), ..WriteContext::default() };
        let created = self.storage.create(&name, object(&name, value), context);
        let outcome = match self.server.ask(rng, created).await {
            Some(Ok(stored)) => RecordedOutcome::Committed(stored.revision.0),
            Some(Err(error)) => self.failed(&error, None),
            None => RecordedOutcome::Unknown,
        };
        self.note(called, &name, None, Some(value), guard, outcome);
    }

    async fn update(&self, rng: &mut StdRng) {
        let (name, guard) = (any_key(rng), self.guard(rng));
        let key = format!("{PREFIX}{name}");
        let insists = rng.random_ratio(2, 3).then(|| expected(self.context, &key, rng));
        let deletes = rng.random_ratio(1, 4);
        let plan = UpdatePlan { insists, value: (!deletes).then(|| self.context.recorder.value()) };
        let mut seen: Option<Rev> = None;
        let called = self.context.recorder.stamp();
        let mut decide = |stored: Option<&Stored>| {
            seen = stored.map(|stored| stored.revision.0);
            plan.decide(&name, stored)
        };
        let context = WriteContext { guard: guard.as_ref(), ..WriteContext::default() };
        let updated = self.storage.update(&name, context, &mut decide);
        let outcome = match self.server.ask(rng, updated).await {
            Some(Ok((stored, true))) => RecordedOutcome::Committed(stored.revision.0),
            // Each decision changes something.
            Some(Ok((_, false))) => RecordedOutcome::Refused,
            Some(Err(error)) => self.failed(&error, seen),
            None => RecordedOutcome::Unknown,
        };
        self.note(called, &name, seen, plan.value, guard, outcome);
    }

    fn guard(&self, rng: &mut StdRng) -> Option<Guard> {
        let revision = self.context.known(GUARD).filter(|_| rng.random_ratio(1, 6))?;
        Some(Guard { key: GUARD.to_owned(), revision: Revision(revision) })
    }

    fn failed(&self, error: &StorageError, seen: Option<Rev>) -> RecordedOutcome {
        match error {
            StorageError::AlreadyExists => RecordedOutcome::Conflict(Present::Something),
            StorageError::Refused(_) => RecordedOutcome::Conflict(Present::Version(seen)),
            StorageError::NotFound => RecordedOutcome::Conflict(Present::Version(None)),
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
            Some(Err(StorageError::NotFound)) => None,
            Some(Err(error)) => return self.refused(called, least, &error),
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
                    Some(Err(error)) => {
                        let asked = if let ReadAt::Exact(at) = options.at { at.0 } else { least };
                        return self.refused(called, asked, &error);
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

    fn refused(&self, called: Moment, asked: Rev, error: &StorageError) {
        match error {
            StorageError::Expired { .. } => {
                self.context.recorder.op(self.by, called, RecordedOperation::Expired { asked });
            }
            _ => self.context.recorder.unanswered(self.by, called, error),
        }
    }
}

impl UpdatePlan {
    fn decide(&self, name: &str, stored: Option<&Stored>) -> Result<UpdateDecision, ApiError> {
        let found = stored.map(|stored| stored.revision.0);
        if self.insists.is_some_and(|expected| expected != found) {
            return Err(ApiError::conflict("test.example", "widgets", name, "another version stands there"));
        }
        Ok(match (self.value, stored) {
            (Some(value), _) => UpdateDecision::Write(object(name, value)),
            (None, Some(stored)) => UpdateDecision::Delete(Object::clone(&stored.object())),
            (None, None) => UpdateDecision::Keep,
        })
    }
}
