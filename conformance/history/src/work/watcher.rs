//! Clients that watch for a while, from anywhere, sometimes without reading, and then begin anew.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use drydock_storage::backend::{Revision, prefix_range};
use drydock_storage::storage::{ReadAt, RequiredField, Scope, WatchFrom, Watcher as TypedWatcher};
use rand::RngExt;
use rand::rngs::StdRng;

use super::notes::{Notes, ended, item, typed_item};
use super::typed::storage;
use super::{Layer, any_key, recent};
use crate::context::{HistoryContext, StoreServer};
use crate::object::{self, PREFIX};
use crate::record::{DeliveredItem, Rev, WatchStart};

/// A watcher of the backend.
pub async fn bytes(context: Arc<HistoryContext>, which: usize, mut rng: StdRng) {
    while !context.over.is_cancelled() {
        let server = tokio::select! {
            server = context.server(which) => server,
            () = context.over.cancelled() => return,
        };
        let keys = match rng.random_range(0..3) {
            0 => prefix_range(PREFIX),
            1 => prefix_range(&format!("{PREFIX}a/")),
            _ => {
                let key = format!("{PREFIX}{}", any_key(&mut rng));
                key.clone()..format!("{key}\0")
            }
        };
        let after = start(&context, &mut rng);
        let mut notes =
            Notes::bytes(&context, "a watcher of the backend", keys.clone(), WatchStart::After(after));
        let Ok(mut items) = server.backend.watch(keys, Revision(after)).await else { continue };
        let mut pace = ReadPace::any(&mut rng);
        while let Some(Some(next)) = pace.next(&context, &server, &mut rng, items.recv()).await {
            for item in item(next) {
                notes.item(item);
            }
        }
    }
}

/// A watcher of typed objects.
pub async fn typed(context: Arc<HistoryContext>, which: usize, layer: Layer, mut rng: StdRng) {
    while !context.over.is_cancelled() {
        let server = tokio::select! {
            server = context.server(which) => server,
            () = context.over.cancelled() => return,
        };
        let (scope, keys, even) = scope(&mut rng);
        let newest = context.recorder.newest();
        let (from, noted) = match rng.random_range(0..4) {
            0 => (WatchFrom::InitialEvents(ReadAt::Latest), WatchStart::Initial(newest)),
            1 => {
                let at = recent(&context, &mut rng);
                (WatchFrom::InitialEvents(ReadAt::NotOlderThan(Revision(at))), WatchStart::Initial(at))
            }
            _ => {
                let after = start(&context, &mut rng);
                (WatchFrom::After(Revision(after)), WatchStart::After(after))
            }
        };
        let by = if layer == Layer::Cache { "a watcher of the cache" } else { "a watcher of the store" };
        let mut notes = Notes::new(&context, by, keys, noted, even, false);
        let opened = server.ask(&mut rng, storage(&server, layer).watch(scope, from)).await;
        let mut watcher = match opened {
            Some(Ok(watcher)) => watcher,
            Some(Err(failed)) => {
                notes.item(ended(&failed.error));
                continue;
            }
            None => continue,
        };
        let is_cached = layer == Layer::Cache;
        read(&context, &server, &mut rng, watcher.as_mut(), &mut notes, is_cached).await;
    }
}

async fn read(
    context: &HistoryContext,
    server: &StoreServer,
    rng: &mut StdRng,
    watcher: &mut dyn TypedWatcher,
    notes: &mut Notes<'_>,
    is_cached: bool,
) {
    let mut pace = ReadPace::any(rng);
    let mut bookmarked = 0;
    let mut initial = notes.is_initial();
    loop {
        let next = pace.next(context, server, rng, watcher.next()).await;
        let over = !matches!(next, Some(Some(_)));
        for event in next.flatten().into_iter().flatten() {
            match typed_item(event, &mut initial) {
                DeliveredItem::Expired if is_cached && server.was_filled_anew() => {
                    context.recorder.count("watches ended by a cache that was filled anew");
                    notes.item(DeliveredItem::Failed);
                }
                item => notes.item(item),
            }
        }
        let progress = watcher.progress().0;
        if progress > bookmarked {
            bookmarked = progress;
            notes.item(DeliveredItem::Progress(progress));
        }
        if over {
            return;
        }
    }
}

/// Where a watch begins: mostly a little back, sometimes in the future.
fn start(context: &HistoryContext, rng: &mut StdRng) -> Rev {
    match rng.random_range(0..12) {
        0 => context.recorder.newest() + rng.random_range(1..5),
        _ => recent(context, rng),
    }
}

fn scope(rng: &mut StdRng) -> (Scope, Range<String>, bool) {
    let (scope, keys) = match rng.random_range(0..3) {
        0 => (Scope::all(), prefix_range(PREFIX)),
        1 => (Scope::namespace("a"), prefix_range(&format!("{PREFIX}a/"))),
        _ => {
            let key = any_key(rng);
            let whole = format!("{PREFIX}{key}");
            (Scope::object(&key), whole.clone()..format!("{whole}\0"))
        }
    };
    match rng.random_ratio(1, 3) {
        true => {
            let even = |object: &drydock_machinery::Object| {
                object::value_of(&object.0).is_some_and(|value| value.is_multiple_of(2))
            };
            let mut scope = scope.matching(&["metadata.annotations"], even);
            // The same by a label, which watchers are woken by.
            if let Some(selection) = scope.matches.as_mut().filter(|_| rng.random()) {
                let path = ["metadata", "labels", object::PARITY].map(str::to_owned).into();
                selection.requires = Some(RequiredField { path, value: object::EVEN.to_owned() });
            }
            (scope, keys, true)
        }
        false => (scope, keys, false),
    }
}

/// How a watcher reads: so many deliveries, and pauses before some.
struct ReadPace {
    left: usize,
    stalls: bool,
}

impl ReadPace {
    fn any(rng: &mut StdRng) -> Self {
        Self { left: rng.random_range(1..400), stalls: rng.random_ratio(1, 4) }
    }

    /// The next delivery; none when this watcher stops reading.
    async fn next<T>(
        &mut self,
        context: &HistoryContext,
        server: &StoreServer,
        rng: &mut StdRng,
        next: impl Future<Output = T>,
    ) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        if self.stalls && rng.random_ratio(1, 20) {
            context.recorder.count("watchers stalled");
            tokio::time::sleep(Duration::from_millis(rng.random_range(1..500))).await;
        }
        let quiet = Duration::from_millis(rng.random_range(20..2_000));
        tokio::select! {
            next = next => Some(next),
            () = server.gone.cancelled() => None,
            () = context.over.cancelled() => None,
            () = tokio::time::sleep(quiet) => None,
        }
    }
}
