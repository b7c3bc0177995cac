//! All open responses of one server, and what they hold together.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use axum::body::Body;
use drydock_serving::connection::Connection;
use drydock_serving::request::user::User;
use http::Response;
use hyper::body::Body as _;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::Notify;

use super::Streaming;
use super::body::ResponseBody;
use super::open_response::{OpenResponse, ResponseAccount, Tracked};
use crate::metrics::Sizes;

/// What open responses may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes that all of them hold together.
    pub bytes: usize,
    /// Time without progress after which one drops its past state.
    pub patience: Duration,
    /// Time between two sweeps.
    pub period: Duration,
}

impl Default for Limits {
    /// Room for the watches of 5,000 node agents that all begin at once, in a process of 1 GiB.
    fn default() -> Self {
        Self { bytes: 256 << 20, patience: Duration::from_secs(30), period: Duration::from_secs(1) }
    }
}

/// A stream has this much more time to end by itself.
pub(super) const LATE: Duration = Duration::from_secs(1);

/// The open responses of one server.
#[derive(Clone)]
pub struct OpenResponses(pub(super) Arc<Shared>);

/// To whom a response is sent, and until when.
pub struct Delivery<G> {
    /// When it has to be sent; a [`Streaming`] that says when it ends has until then.
    pub deadline: Instant,
    /// The user, where it is known: all others count as one user.
    pub user: Option<Arc<User>>,
    /// The client's connection.
    pub connection: Arc<Connection>,
    /// Kept until it has been sent, at most until the deadline: its seat.
    pub guard: G,
    /// Counts its size.
    pub sizes: Option<Sizes>,
}

pub(super) struct Shared {
    pub(super) limits: Limits,
    open: Mutex<Slots>,
    /// Notified when a response is opened while none is open.
    pub(super) opened: Notify,
    /// Notified when open responses hold more than there is room for.
    pub(super) short: Notify,
    /// Bytes that open responses and their frames are counted for, without past states and waiting events.
    charged: AtomicUsize,
    /// Bytes of all that they held at the last sweep.
    pub(super) held: Gauge,
    pub(super) ended: Family<Why, Counter>,
}

/// Why a response was ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Why {
    pub(super) reason: &'static str,
}

impl Default for OpenResponses {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl OpenResponses {
    /// Open responses that are kept within `limits`.
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared {
            limits,
            open: Mutex::default(),
            opened: Notify::new(),
            short: Notify::new(),
            charged: AtomicUsize::new(0),
            held: Gauge::default(),
            ended: Family::default(),
        }))
    }

    /// Counts what open responses hold, and those that were ended.
    pub fn register(&self, registry: &mut Registry) {
        let what = "Bytes held by responses that are being sent";
        registry.register("drydock_open_answers_bytes", what, self.0.held.clone());
        let what = "Answers that were ended because nobody read them";
        registry.register("drydock_ended_answers", what, self.0.ended.clone());
    }

    /// Bytes that open responses and their frames are counted for.
    pub fn held(&self) -> usize {
        self.0.charged.load(Relaxed)
    }

    /// Returns the response with a body that counts until it has been sent.
    pub fn send<G: Send + 'static>(
        &self,
        mut response: Response<Body>,
        delivery: Delivery<G>,
    ) -> Response<ResponseBody<G>> {
        let streaming = response.extensions_mut().remove::<Streaming>();
        let Delivery { deadline, user, connection, guard, mut sizes } = delivery;
        if let Some(size) = response.body().size_hint().exact() {
            sizes.take().inspect(|sizes| sizes.observe(size));
        }
        if response.body().is_end_stream() {
            return response.map(ResponseBody::empty);
        }
        let ends = streaming.as_ref().and_then(|streaming| streaming.ends);
        let deadline = ends.map_or(deadline, |ends| ends + LATE);
        let open_response = Arc::new_cyclic(|open_response: &Weak<OpenResponse<G>>| {
            let place = (self.0.clone(), self.0.enter(open_response.clone()));
            let account = ResponseAccount::open(place, (user, connection), deadline, streaming);
            OpenResponse { account, guard: Mutex::new(Some(guard)) }
        });
        response.map(|body| ResponseBody::new(body, open_response, sizes))
    }
}

impl Shared {
    /// Counts `bytes` more that open responses hold. Notifies [`Self::short`] if that is more than there is room for.
    pub(super) fn charge(&self, bytes: usize) {
        let before = self.charged.fetch_add(bytes, Relaxed);
        if before.saturating_add(bytes) > self.limits.bytes {
            self.short.notify_one();
        }
    }

    /// Counts `bytes` that open responses no longer hold.
    pub(super) fn free(&self, bytes: usize) {
        self.charged.fetch_sub(bytes, Relaxed);
    }

    /// Adds an open response. Returns its slot.
    fn enter(&self, open_response: Weak<dyn Tracked>) -> usize {
        let (slot, is_only) = {
            let mut open = self.open.lock();
            (open.enter(open_response), open.count() == 1)
        };
        if is_only {
            self.opened.notify_one();
        }
        slot
    }

    /// Removes the response in `slot`.
    pub(super) fn leave(&self, slot: usize) {
        let _left = self.open.lock().leave(slot);
    }

    /// Whether no response is open.
    pub(super) fn is_empty(&self) -> bool {
        self.open.lock().count() == 0
    }

    /// All open responses.
    pub(super) fn all(&self) -> Vec<Arc<dyn Tracked>> {
        self.open.lock().all()
    }
}

/// The open responses, each in a slot of its own.
#[derive(Default)]
struct Slots {
    taken: Vec<Option<Weak<dyn Tracked>>>,
    free: Vec<usize>,
}

impl Slots {
    fn enter(&mut self, open_response: Weak<dyn Tracked>) -> usize {
        if let Some(slot) = self.free.pop() {
            self.taken[slot] = Some(open_response);
            return slot;
        }
        self.taken.push(Some(open_response));
        self.taken.len() - 1
    }

    fn leave(&mut self, slot: usize) -> Option<Weak<dyn Tracked>> {
        self.free.push(slot);
        self.taken.get_mut(slot).and_then(Option::take)
    }

    fn count(&self) -> usize {
        self.taken.len() - self.free.len()
    }

    fn all(&self) -> Vec<Arc<dyn Tracked>> {
        self.taken.iter().flatten().filter_map(Weak::upgrade).collect()
    }
}
