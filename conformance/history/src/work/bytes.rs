//! A client of the backend itself.

use std::sync::Arc;

use drydock_storage::backend::{
    BackendError, CompareAndSwap as Ask, Guard, KeyValue, Revision, WriteOutcome, prefix_range,
};
use rand::RngExt;
use rand::rngs::StdRng;

use super::{any_key, expected, recent};
use crate::context::{HistoryContext, StoreServer, TimedFailure};
use crate::object::{self, GUARD, PREFIX, object};
use crate::record::{Pair, Present, RecordedOperation, RecordedOutcome, RecordedWrite, Rev};

const BY: &str = "a client of the backend";

pub async fn run(context: Arc<HistoryContext>, which: usize, mut rng: StdRng) {
    while !context.over.is_cancelled() {
        let server = tokio::select! {
            server = context.server(which) => server,
            () = context.over.cancelled() => return,
        };
        let client = BytesClient { context: &context, server: &server };
        match rng.random_range(0..100) {
            0..55 => client.write(&mut rng).await,
            55..60 => client.raise_guard(&mut rng).await,
            60..80 => client.get(&mut rng).await,
            80..85 => client.get_at(&mut rng).await,
            _ => client.range(&mut rng).await,
        }
    }
}

pub struct BytesClient<'a> {
    pub context: &'a HistoryContext,
    pub server: &'a StoreServer,
}

impl BytesClient<'_> {
    async fn write(&self, rng: &mut StdRng) {
        let name = any_key(rng);
        let key = format!("{PREFIX}{name}");
        let expected = expected(self.context, &key, rng);
        let deletes = expected.is_some() && rng.random_ratio(1, 5);
        let guard = match rng.random_ratio(1, 6) {
            true => self.context.known(GUARD).map(|revision| (GUARD.to_owned(), revision)),
            false => None,
        };
        let value = (!deletes).then(|| self.context.recorder.value());
        self.swap(
            name,
            RecordedWrite { key, expected, value, guard, outcome: RecordedOutcome::Unknown },
            rng,
        )
        .await;
    }

    async fn raise_guard(&self, rng: &mut StdRng) {
        let expected = expected(self.context, GUARD, rng);
        let value = Some(self.context.recorder.value());
        let write = RecordedWrite {
            key: GUARD.to_owned(),
            expected,
            value,
            guard: None,
            outcome: RecordedOutcome::Unknown,
        };
        self.swap("fence/leader".to_owned(), write, rng).await;
    }

    async fn swap(&self, name: String, mut write: RecordedWrite, rng: &mut StdRng) {
        let recorder = &self.context.recorder;
        let guard = write.guard.clone();
        let ask = Ask {
            key: write.key.clone(),
            expected: write.expected.map(Revision),
            value: write.value.map(|value| object(&name, value).to_json()),
            guard: guard.map(|(key, revision)| Guard { key, revision: Revision(revision) }),
            priority: Default::default(),
        };
        let called = recorder.stamp();
        let answer = self.server.ask(rng, self.server.backend.write(ask)).await;
        let mut stood = None;
        write.outcome = match answer {
            None => RecordedOutcome::Unknown,
            Some(Ok(WriteOutcome::Committed(at))) => {
                self.context.saw(&write.key, write.value.map(|_| at.0));
                RecordedOutcome::Committed(at.0)
            }
            Some(Ok(WriteOutcome::Conflict(present, at))) => {
                let present = present.as_ref().and_then(|pair| read(pair).ok());
                let version = present.as_ref().map(|pair| pair.modified);
                self.context.saw(&write.key, version);
                stood = Some((present, at.0));
                RecordedOutcome::Conflict(Present::Version(version))
            }
            Some(Ok(WriteOutcome::GuardFailed)) => RecordedOutcome::Guarded,
            Some(Err(failed)) => self.failed(&failed.error),
        };
        let key = write.key.clone();
        if let Some((found, at)) = stood {
            recorder.op(BY, called, RecordedOperation::Get { key, found, revision: Some(at) });
        }
        recorder.op(BY, called, RecordedOperation::Write(write));
    }

    /// What an error says of a write.
    fn failed(&self, error: &BackendError) -> RecordedOutcome {
        match error {
            BackendError::Overloaded
            | BackendError::TooLarge
            | BackendError::NoSpace(_)
            | BackendError::Closed(_) => RecordedOutcome::Refused,
            _ => {
                self.context.recorder.count("writes that failed");
                RecordedOutcome::Unknown
            }
        }
    }

    async fn get(&self, rng: &mut StdRng) {
        let key = format!("{PREFIX}{}", any_key(rng));
        let called = self.context.recorder.stamp();
        match self.server.ask(rng, self.server.backend.get(&key, None)).await {
            Some(Ok((found, at))) => {
                let found = found.as_ref().and_then(|pair| read(pair).ok());
                self.context.saw(&key, found.as_ref().map(|pair| pair.modified));
                self.context.recorder.op(
                    BY,
                    called,
                    RecordedOperation::Get { key, found, revision: Some(at.0) },
                );
            }
            Some(Err(failed)) => self.unanswered(called, &failed),
            None => {}
        }
    }

    async fn get_at(&self, rng: &mut StdRng) {
        let (key, at) = (format!("{PREFIX}{}", any_key(rng)), recent(self.context, rng));
        let called = self.context.recorder.stamp();
        let answer = self.server.ask(rng, self.server.backend.get(&key, Some(Revision(at)))).await;
        let what = match answer {
            Some(Ok((found, revision))) => {
                let found = found.iter().filter_map(|pair| read(pair).ok()).collect();
                let keys = key.clone()..format!("{key}\0");
                RecordedOperation::Range {
                    keys,
                    found,
                    revision: revision.0,
                    latest: false,
                    least: at,
                    whole: true,
                }
            }
            Some(Err(failed)) => return self.refused(called, at, &failed),
            None => return,
        };
        self.context.recorder.op(BY, called, what);
    }

    /// A list, in pages of any size.
    async fn range(&self, rng: &mut StdRng) {
        let scope = ["", "a/", "b/", "ab/"][rng.random_range(0..4)];
        let keys = prefix_range(&format!("{PREFIX}{scope}"));
        let limit = rng.random_range(0..5);
        let mut at = rng.random_ratio(1, 3).then(|| Revision(recent(self.context, rng)));
        let (latest, least) = (at.is_none(), at.map_or(0, |at| at.0));
        let (mut rest, mut found) = (keys.clone(), Vec::new());
        let called = self.context.recorder.stamp();
        loop {
            let page = self.server.ask(rng, self.server.backend.range(rest.clone(), limit, at)).await;
            let page = match page {
                Some(Ok(page)) => page,
                Some(Err(failed)) => return self.refused(called, at.map_or(0, |at| at.0), &failed),
                None => return,
            };
            found.extend(page.items.iter().filter_map(|pair| read(pair).ok()));
            let whole = page.count <= page.items.len() as u64;
            // What is asked for later is of the first page's revision, which is when the list was made.
            if let Some(last) = page.items.last().filter(|_| !whole) {
                rest.start = format!("{}\0", last.key);
                at = Some(page.revision);
                continue;
            }
            let revision = page.revision.0;
            self.context.recorder.reached(revision);
            let what = RecordedOperation::Range { keys, found, revision, latest, least, whole };
            return self.context.recorder.op(BY, called, what);
        }
    }

    fn refused(&self, called: u64, asked: Rev, failed: &TimedFailure<BackendError>) {
        match failed.error {
            BackendError::Compacted { .. } => {
                self.context.recorder.op(BY, called, RecordedOperation::Expired { asked })
            }
            _ => self.unanswered(called, failed),
        }
    }

    fn unanswered(&self, called: u64, failed: &TimedFailure<BackendError>) {
        self.context.recorder.unanswered(BY, called, failed.had_its_time(), &failed.error);
    }
}

/// A pair that cannot be read is left out, and so missed.
fn read(pair: &KeyValue) -> anyhow::Result<Pair> {
    object::pair(pair)
}
