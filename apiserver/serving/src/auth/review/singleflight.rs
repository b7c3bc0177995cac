//! Reviews in flight: requests with equal questions share one review (singleflight).
//!
//! Lock order: the singleflight, then the cache of the caller ([`Singleflight::begin`] looks into it).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// The key of a question: equal questions have equal keys.
pub(crate) type ReviewKey = Arc<[u8]>;

/// What becomes of a review: nothing yet, no answer, or the answer.
type SharedAnswer<V> = Option<Option<V>>;

/// The reviews in flight of one sort.
pub(super) struct Singleflight<V>(Mutex<HashMap<ReviewKey, watch::Sender<SharedAnswer<V>>>>);

/// Waits for the answer of a review in flight.
pub(super) struct Awaited<V>(watch::Receiver<SharedAnswer<V>>);

/// A review in flight, until it has its answer.
pub(super) struct Flight<V> {
    singleflight: Arc<Singleflight<V>>,
    key: ReviewKey,
    sender: watch::Sender<SharedAnswer<V>>,
}

/// What [`Singleflight::begin`] finds.
pub(super) enum Begun<V> {
    /// No review of this is in flight: the caller has to make it.
    Now(Flight<V>, Awaited<V>),
    /// Another request makes the review already.
    Before(Awaited<V>),
    /// Another request has the answer.
    Known(V),
}

impl<V> Singleflight<V> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    /// The review in flight of `key`, if there is one.
    pub(super) fn find(&self, key: &ReviewKey) -> Option<Awaited<V>> {
        self.0.lock().get(key).map(|sender| Awaited(sender.subscribe()))
    }

    /// Begins a review of `key`, unless one is in flight or the answer is `known` by now.
    pub(super) fn begin(self: &Arc<Self>, key: ReviewKey, known: impl FnOnce() -> Option<V>) -> Begun<V> {
        let mut singleflight = self.0.lock();
        if let Some(sender) = singleflight.get(&key) {
            return Begun::Before(Awaited(sender.subscribe()));
        }
        if let Some(answer) = known() {
            return Begun::Known(answer);
        }
        let (sender, awaited) = watch::channel(None);
        singleflight.insert(key.clone(), sender.clone());
        Begun::Now(Flight { singleflight: self.clone(), key, sender }, Awaited(awaited))
    }
}

impl<V> Flight<V> {
    /// Whether a request waits for the answer.
    pub(super) fn is_awaited(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    /// Ends the flight with its answer, `None` if there is none. The next request with the same question begins a new
    /// one.
    pub(super) fn finish(self, answer: Option<V>) {
        let sender = self.sender.clone();
        drop(self);
        sender.send_replace(Some(answer));
    }
}

/// Runs for a review that panics too: waiting requests then get no answer, as no sender is left.
impl<V> Drop for Flight<V> {
    fn drop(&mut self) {
        let sender = self.singleflight.0.lock().remove(&self.key);
        drop(sender);
    }
}

impl<V: Clone> Awaited<V> {
    /// The answer, once the review has finished; `None` if it has none.
    pub(super) async fn answer(mut self) -> Option<V> {
        let outcome = self.0.wait_for(Option::is_some).await.ok()?;
        outcome.clone().flatten()
    }
}
