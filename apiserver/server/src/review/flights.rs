//! Reviews in flight: whoever asks what is being asked already waits for that answer. A review goes on when the one who
//! began it has gone away; it is tried again only while somebody waits for it.

use std::collections::HashMap;
use std::sync::Arc;

use drydock_machinery::ApiError;
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::Instrument;

use super::queue::Turn;

/// What tells one question from another.
pub(crate) type Key = Arc<[u8]>;

/// What becomes of a review: nothing yet, no answer, or the answer.
type Landed<V> = Option<Option<V>>;

/// The reviews in flight of one sort.
pub(crate) struct Flights<V>(Mutex<HashMap<Key, watch::Sender<Landed<V>>>>);

/// One review in flight, as its task sees it.
pub(crate) struct Flight<V>(watch::Sender<Landed<V>>);

impl<V> Flight<V> {
    /// Whether anybody waits for the answer.
    pub(crate) fn is_awaited(&self) -> bool {
        self.0.receiver_count() > 0
    }
}

impl<V: Clone + Send + Sync + 'static> Flights<V> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    /// The answer of the review in flight of `key`, or else of one that is begun when it has a `turn`, unless the answer
    /// is `known` by then. `ask` remembers its answer before it returns it. `None` if the host gives no answer.
    pub(crate) async fn answer<F>(
        self: &Arc<Self>,
        key: Key,
        turn: impl Future<Output = Result<Turn, ApiError>>,
        known: impl FnOnce() -> Option<V>,
        ask: impl FnOnce(Turn, Flight<V>) -> F,
    ) -> Result<Option<V>, ApiError>
    where
        F: Future<Output = Option<V>> + Send + 'static,
    {
        if let Some(flight) = self.join(&key) {
            return Ok(landed(flight).await);
        }
        let turn = turn.await?;
        let begun = match self.begin(&key, known) {
            Begun::Now(sender) => sender,
            Begun::Before(flight) => {
                turn.end_uncounted();
                return Ok(landed(flight).await);
            }
            Begun::Over(answer) => {
                turn.end_uncounted();
                return Ok(Some(answer));
            }
        };
        let flight = begun.subscribe();
        let landing = Landing { flights: self.clone(), key };
        let review = ask(turn, Flight(begun.clone()));
        let task = async move {
            let answer = review.await;
            drop(landing);
            begun.send_replace(Some(answer));
        };
        tokio::spawn(task.in_current_span());
        Ok(landed(flight).await)
    }

    /// Others may have asked the same while this one waited for a turn.
    fn begin(&self, key: &Key, known: impl FnOnce() -> Option<V>) -> Begun<V> {
        let mut flights = self.0.lock();
        if let Some(flight) = flights.get(key) {
            return Begun::Before(flight.subscribe());
        }
        if let Some(answer) = known() {
            return Begun::Over(answer);
        }
        let (sender, _) = watch::channel(None);
        flights.insert(key.clone(), sender.clone());
        Begun::Now(sender)
    }

    fn join(&self, key: &Key) -> Option<watch::Receiver<Landed<V>>> {
        self.0.lock().get(key).map(watch::Sender::subscribe)
    }
}

enum Begun<V> {
    /// By whoever asks.
    Now(watch::Sender<Landed<V>>),
    /// By somebody else.
    Before(watch::Receiver<Landed<V>>),
    /// By somebody else, who has the answer.
    Over(V),
}

/// Ends a flight, whatever became of it.
struct Landing<V> {
    flights: Arc<Flights<V>>,
    key: Key,
}

impl<V> Drop for Landing<V> {
    fn drop(&mut self) {
        let sender = self.flights.0.lock().remove(&self.key);
        drop(sender);
    }
}

/// The answer, once there is one. A review that ended by a fault of its own has none.
async fn landed<V: Clone>(mut flight: watch::Receiver<Landed<V>>) -> Option<V> {
    let landed = flight.wait_for(Option::is_some).await.ok()?;
    landed.clone().flatten()
}
