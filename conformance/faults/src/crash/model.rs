//! What a store has acknowledged and delivered, and whether it is there after a crash.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use drydock_storage::backend::{Backend, BackendEvent, Revision, WatchItem, prefix_range};
use drydock_storage_sqlite::{self as sqlite, Progress, SqliteBackend, SqliteOptions};

/// A key, and what was written to it; `None` is a delete.
pub type Wrote = (String, Option<String>);

/// Options with frequent checkpoints, during which much can go wrong.
pub fn options() -> SqliteOptions {
    SqliteOptions { checkpoint_pages: 40, ..SqliteOptions::default() }
}

/// What has been promised of one store.
#[derive(Default)]
pub struct Model {
    /// What stands at each revision.
    promised: BTreeMap<u64, Wrote>,
    /// The last promise about each key.
    last: HashMap<String, u64>,
    /// Writes without an answer.
    open: Vec<Wrote>,
    /// The highest revision that was answered or delivered.
    seen: u64,
    /// Whether two events of the next history are swapped: an injected fault, which the check must find.
    pub swap_events: bool,
}

/// What the check of a store covered.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckedCounts {
    /// Events that were compared.
    pub events: u64,
    /// Of the writes without an answer, those that are there.
    pub appeared: u64,
}

impl Model {
    /// A write was sent.
    pub fn tried(&mut self, wrote: Wrote) {
        self.open.push(wrote);
    }

    /// It was answered, or a watch delivered it, or both: it stands at a revision. No revision is given out twice.
    pub fn acknowledged(&mut self, revision: u64, wrote: Wrote) -> Result<()> {
        if !self.promised.contains_key(&revision) {
            self.answered(&wrote);
        }
        self.promise(revision, wrote)
    }

    /// It was answered: it was not made.
    pub fn refused(&mut self, wrote: &Wrote) {
        self.answered(wrote);
    }

    fn answered(&mut self, wrote: &Wrote) {
        if let Some(at) = self.open.iter().position(|open| open == wrote) {
            self.open.swap_remove(at);
        }
    }

    fn promise(&mut self, revision: u64, wrote: Wrote) -> Result<()> {
        let last = self.last.entry(wrote.0.clone()).or_default();
        *last = revision.max(*last);
        self.seen = self.seen.max(revision);
        match self.promised.insert(revision, wrote.clone()) {
            Some(other) if other != wrote => bail!("revision {revision} is {wrote:?}, and was {other:?}"),
            _ => Ok(()),
        }
    }

    /// Opens the store after a crash and checks every promise.
    pub async fn verify(&mut self, path: &Path) -> Result<CheckedCounts> {
        let contents = sqlite::check(path, &Progress::silent()).context("check")?;
        let store: Arc<dyn Backend> = Arc::new(SqliteBackend::open(path, options())?);
        let (oldest, newest) = (contents.oldest.0, store.current_revision().await?.0);
        ensure!(newest >= self.seen, "the revision is {newest}, and was {}", self.seen);
        let mut checked =
            self.compare_history(&history(store.as_ref(), oldest, newest).await?, oldest, newest)?;
        checked.appeared += self.compare_state(store.as_ref()).await?;
        self.open.clear();
        self.seen = newest;
        self.promised = self.promised.split_off(&oldest);
        Ok(checked)
    }

    /// Checks that each revision comes once and in order, each promise at its revision, and nothing that was not written.
    fn compare_history(
        &mut self,
        history: &[BackendEvent],
        oldest: u64,
        newest: u64,
    ) -> Result<CheckedCounts> {
        let mut order: Vec<_> = history.iter().collect();
        if std::mem::take(&mut self.swap_events) && order.len() > 1 {
            order.swap(0, 1);
        }
        let mut checked = CheckedCounts::default();
        for (expected, event) in (oldest + 1..).zip(order) {
            let at = event.revision.0;
            ensure!(at == expected, "the watch delivered revision {at} where {expected} must come");
            checked.appeared += u64::from(self.stands(at, wrote(event.key.clone(), event.value.as_deref()))?);
            checked.events += 1;
        }
        ensure!(
            checked.events == newest - oldest,
            "of {oldest}..{newest} the watch delivered {}",
            checked.events
        );
        Ok(checked)
    }

    /// The last write of each key is there.
    async fn compare_state(&mut self, store: &dyn Backend) -> Result<u64> {
        let mut appeared = 0;
        let mut live = HashMap::new();
        for pair in store.range(prefix_range("/"), 0, None).await?.items {
            appeared +=
                u64::from(self.stands(pair.mod_revision.0, wrote(pair.key.clone(), Some(&pair.value)))?);
            live.insert(pair.key, pair.mod_revision.0);
        }
        for (key, last) in &self.last {
            let deleted = |wrote: &Wrote| wrote.0 == *key && wrote.1.is_none();
            let promised = self.promised.get(last).filter(|wrote| !deleted(wrote));
            match live.get(key) {
                Some(at) => ensure!(at >= last, "{key} is as of {at}, and was written at {last}"),
                None if promised.is_none() || self.open.iter().any(deleted) => {}
                None => bail!("{key}, written at {last}, is not there"),
            }
        }
        Ok(appeared)
    }

    /// Checks that the write at a revision is the one that was promised there, or one that was never acknowledged.
    /// The latter is promised from now on, and `true` is returned.
    fn stands(&mut self, at: u64, wrote: Wrote) -> Result<bool> {
        match self.promised.get(&at) {
            Some(promised) => {
                ensure!(*promised == wrote, "{wrote:?} stands at {at}, where {promised:?} was promised");
                return Ok(false);
            }
            None if !self.open.contains(&wrote) => {
                ensure!(self.last.get(&wrote.0) == Some(&at), "nobody wrote {wrote:?}, which stands at {at}");
                return Ok(false);
            }
            None => {}
        }
        self.answered(&wrote);
        self.promise(at, wrote).map(|()| true)
    }
}

fn wrote(key: String, value: Option<&[u8]>) -> Wrote {
    (key, value.map(|value| String::from_utf8_lossy(value).into_owned()))
}

async fn history(store: &dyn Backend, oldest: u64, newest: u64) -> Result<Vec<BackendEvent>> {
    let mut events = Vec::new();
    let mut watch = store.watch(prefix_range("/"), Revision(oldest)).await?;
    while events.last().map_or(oldest, |event: &BackendEvent| event.revision.0) < newest {
        match watch.recv().await.context("the watch ended")? {
            WatchItem::Events(more) => events.extend(more),
            WatchItem::Progress(_) => {}
            WatchItem::Failed(error) => return Err(error.into()),
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn deleted() -> Wrote {
        ("/a".to_owned(), None)
    }

    #[test]
    fn an_event_that_is_delivered_late_answers_no_later_write() {
        let mut model = Model::default();
        model.tried(deleted());
        model.acknowledged(5, deleted()).unwrap();
        model.tried(deleted());
        model.acknowledged(5, deleted()).unwrap();
        assert!(model.stands(9, deleted()).unwrap(), "the second one was sent, and may be there");
        assert!(model.stands(10, deleted()).is_err(), "a third one was not");
    }

    #[test]
    fn a_revision_is_given_out_once() {
        let mut model = Model::default();
        model.acknowledged(5, deleted()).unwrap();
        assert!(model.acknowledged(5, ("/b".to_owned(), None)).is_err());
        assert!(model.stands(5, ("/a".to_owned(), Some("x".to_owned()))).is_err());
    }
}
