//! Clients that watch for a while, from anywhere, sometimes without reading, and then begin anew.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use drydock_storage::backend::{BackendError, BackendEvent, Revision, WatchItem, prefix_range};
use drydock_storage::storage::{
    ReadAt, Scope, StorageError, Stored, WatchEvent, WatchFrom, Watcher as TypedWatcher,
};
use rand::RngExt;
use rand::rngs::StdRng;

use super::typed::{pair_of, storage};
use super::{Layer, any_key, recent};
use crate::context::{Context, Server};
use crate::object::{self, PREFIX};
use crate::record::{Event, From, Item, Kind, Rev, Stream};

/// The notes of one watch; they are handed in when it is over.
pub struct Notes<'a> {
    context: &'a Context,
    stream: Option<Stream>,
    upto: Rev,
}

impl<'a> Notes<'a> {
    pub fn bytes(context: &'a Context, by: &'static str, keys: Range<String>, from: From) -> Self {
        Self::new(context, by, keys, from, false, true)
    }

    fn new(
        context: &'a Context,
        by: &'static str,
        keys: Range<String>,
        from: From,
        even: bool,
        tells_previous: bool,
    ) -> Self {
        let stream = Stream { by, keys, from, even, tells_previous, items: Vec::new() };
        let upto = stream.base().unwrap_or_default();
        Self { context, stream: Some(stream), upto }
    }

    /// How far all has been told.
    pub fn upto(&self) -> Rev {
        self.upto
    }

    /// Whether the present objects come first.
    fn is_initial(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| matches!(stream.from, From::Initial(_)))
    }

    pub fn item(&mut self, item: Item) {
        self.upto = match &item {
            Item::Event(event) => event.revision,
            Item::Progress(at) | Item::InitialEnd(at) => self.upto.max(*at),
            _ => self.upto,
        };
        let stamp = self.context.recorder.stamp();
        if let Some(stream) = &mut self.stream {
            stream.items.push((stamp, item));
        }
    }
}

impl Drop for Notes<'_> {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.context.recorder.stream(stream);
        }
    }
}

/// A watcher of the backend.
pub async fn bytes(context: Arc<Context>, which: usize, mut rng: StdRng) {
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
        let mut notes = Notes::bytes(&context, "a watcher of the backend", keys.clone(), From::After(after));
        let Ok(mut items) = server.backend.watch(keys, Revision(after)).await else { continue };
        let mut pace = Pace::any(&mut rng);
        while let Some(Some(next)) = pace.next(&context, &server, &mut rng, items.recv()).await {
            for item in item(next) {
                notes.item(item);
            }
        }
    }
}

/// A watcher of typed objects.
pub async fn typed(context: Arc<Context>, which: usize, layer: Layer, mut rng: StdRng) {
    while !context.over.is_cancelled() {
        let server = tokio::select! {
            server = context.server(which) => server,
            () = context.over.cancelled() => return,
        };
        let (scope, keys, even) = scope(&mut rng);
        let newest = context.recorder.newest();
        let (from, noted) = match rng.random_range(0..4) {
            0 => (WatchFrom::InitialEvents(ReadAt::Latest), From::Initial(newest)),
            1 => {
                let at = recent(&context, &mut rng);
                (WatchFrom::InitialEvents(ReadAt::NotOlderThan(Revision(at))), From::Initial(at))
            }
            _ => {
                let after = start(&context, &mut rng);
                (WatchFrom::After(Revision(after)), From::After(after))
            }
        };
        let by = if layer == Layer::Cache { "a watcher of the cache" } else { "a watcher of the store" };
        let mut notes = Notes::new(&context, by, keys, noted, even, false);
        let opened = server.ask(&mut rng, storage(&server, layer).watch(scope, from)).await;
        let mut watcher = match opened {
            Some(Ok(watcher)) => watcher,
            Some(Err(error)) => {
                notes.item(ended(&error));
                continue;
            }
            None => continue,
        };
        read(&context, &server, &mut rng, watcher.as_mut(), &mut notes).await;
    }
}

async fn read(
    context: &Context,
    server: &Server,
    rng: &mut StdRng,
    watcher: &mut dyn TypedWatcher,
    notes: &mut Notes<'_>,
) {
    let mut pace = Pace::any(rng);
    let mut bookmarked = 0;
    let mut initial = notes.is_initial();
    loop {
        let next = pace.next(context, server, rng, watcher.next()).await;
        let over = !matches!(next, Some(Some(_)));
        for event in next.flatten().into_iter().flatten() {
            notes.item(typed_item(event, &mut initial));
        }
        let progress = watcher.progress().0;
        if progress > bookmarked {
            bookmarked = progress;
            notes.item(Item::Progress(progress));
        }
        if over {
            return;
        }
    }
}

/// Where a watch begins: mostly a little back, sometimes in the future.
fn start(context: &Context, rng: &mut StdRng) -> Rev {
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
            (scope.matching(even), keys, true)
        }
        false => (scope, keys, false),
    }
}

/// How a watcher reads: so many deliveries, and pauses before some.
struct Pace {
    left: usize,
    stalls: bool,
}

impl Pace {
    fn any(rng: &mut StdRng) -> Self {
        Self { left: rng.random_range(1..400), stalls: rng.random_ratio(1, 4) }
    }

    /// The next delivery; none when this watcher stops reading.
    async fn next<T>(
        &mut self,
        context: &Context,
        server: &Server,
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

/// A delivery of the backend as notes.
pub fn item(item: WatchItem) -> Vec<Item> {
    match item {
        WatchItem::Events(events) => events.into_iter().map(event).collect(),
        WatchItem::Progress(at) => vec![Item::Progress(at.0)],
        WatchItem::Failed(BackendError::Compacted { .. }) => vec![Item::Expired],
        WatchItem::Failed(_) => vec![Item::Failed],
    }
}

fn event(event: BackendEvent) -> Item {
    let previous = event.previous.as_ref().and_then(|pair| object::pair(pair).ok());
    let value = match &event.value {
        Some(bytes) => serde_json::from_slice(bytes).ok().as_ref().and_then(object::value_of),
        None => previous.as_ref().map(|pair| pair.value),
    };
    let kind = match &event.value {
        None => Kind::Deleted,
        Some(_) if event.create_revision == event.revision => Kind::Added,
        Some(_) => Kind::Modified,
    };
    Item::Event(Event { revision: event.revision.0, key: event.key, kind, value, previous })
}

fn typed_item(event: WatchEvent, initial: &mut bool) -> Item {
    let change = |kind, stored: Arc<Stored>| {
        let pair = pair_of(&stored);
        let (revision, key, value) = (pair.modified, pair.key, Some(pair.value));
        Item::Event(Event { revision, key, kind, value, previous: None })
    };
    match event {
        WatchEvent::Added(stored) if *initial => Item::Present(pair_of(&stored)),
        WatchEvent::Added(stored) => change(Kind::Added, stored),
        WatchEvent::Modified(stored) => change(Kind::Modified, stored),
        WatchEvent::Deleted(stored) => change(Kind::Deleted, stored),
        WatchEvent::Bookmark { revision, initial: true } => {
            *initial = false;
            Item::InitialEnd(revision.0)
        }
        WatchEvent::Bookmark { revision, .. } => Item::Progress(revision.0),
        WatchEvent::Failed(error) => ended(&error),
    }
}

fn ended(error: &StorageError) -> Item {
    match error {
        StorageError::Expired { .. } => Item::Expired,
        _ => Item::Failed,
    }
}
