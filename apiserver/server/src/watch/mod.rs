//! Serves a watch as a body without a task of its own, which ends by itself
//! (k8s.io/apiserver/pkg/endpoints/handlers/watch.go).
//!
//! ```text
//!   Watcher ──batch──▶ pending ──frame──▶ pieces of about 16 KiB ──▶ body
//!   deadline, shutdown ──▶ end        bookmark timer ──▶ bookmark
//! ```

mod backlog;
mod frame;
mod recent_frames;
mod timer;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use drydock_machinery::ApiError;
use drydock_machinery::kind::Now;
use drydock_serving::clock;
use drydock_serving::wire::negotiate::WireFormat;
use drydock_storage::storage::{WatchEvent, Watcher};
use drydock_storage::work_meter::WorkMeter;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame};
use tokio_util::sync::CancellationToken;

use crate::metrics::WatchEvents;
use crate::responses::{InitialEvents, Streaming};
use crate::wire::object::ObjectView;
use backlog::Backlog;
use frame::Framer;
pub use recent_frames::RecentFrames;
use timer::BookmarkTimer;
pub(crate) use timer::{Fired, StreamTimer};

/// What a watch is served with.
pub struct WatchOptions {
    /// How objects are shown.
    pub view: ObjectView,
    /// The clock for the ages in tables.
    pub clock: fn() -> Now,
    /// Whether the client takes bookmarks.
    pub bookmarks: bool,
    /// When the watch ends.
    pub ends: Instant,
    /// Ends it earlier.
    pub shutdown: CancellationToken,
    /// Counts what is sent.
    pub counts: WatchEvents,
    /// The frames that watches of the same objects share.
    pub recent_frames: Arc<RecentFrames>,
    /// The events, or the error that is the only one.
    pub watcher: Result<Box<dyn Watcher>, ApiError>,
    /// Whether it begins with initial events.
    pub initial: bool,
    /// Bytes that its selector takes.
    pub selector: usize,
}

/// A piece is sent when it has grown to this: an unread watch holds one or two of them.
const PIECE: usize = 16 * 1024;

/// The response that streams a watch.
pub fn response(options: WatchOptions) -> Response<Body> {
    let media_type = match options.view.output.format {
        WireFormat::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        _ => "application/json",
    };
    let initial = options.initial.then(InitialEvents::default);
    let (ends, constant) = (Some(options.ends), options.selector);
    let stream = WatchBody::new(options, initial.clone());
    let backlog = stream.backlog.clone();
    // Boxed here: `Body` would put a layer around it that maps errors.
    let mut response = Response::new(Body::new(stream.boxed_unsync()));
    response.extensions_mut().insert(Streaming { ends, ended_at: None, backlog, constant, initial });
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

struct WatchBody {
    framer: Framer,
    watcher: Option<Box<dyn Watcher>>,
    pending: VecDeque<WatchEvent>,
    backlog: Arc<Backlog>,
    failure: Option<ApiError>,
    /// The initial events, until they have been sent.
    initial: Option<InitialEvents>,
    bookmarks: Option<BookmarkTimer>,
    ends: Instant,
    /// Fires at the next bookmark or at the end, whichever is first.
    timer: StreamTimer,
    /// Counts what is decoded to be framed, and whether other tasks run before the next piece.
    work: WorkMeter,
    yields: bool,
}

enum Wake {
    Events,
    Bookmark,
    End,
}

impl HttpBody for WatchBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.poll_piece(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

impl WatchBody {
    fn new(options: WatchOptions, initial: Option<InitialEvents>) -> Self {
        let (watcher, failure) = match options.watcher {
            Ok(watcher) => (Some(watcher), None),
            Err(error) => (None, Some(error)),
        };
        let bookmarks = options.bookmarks.then(|| BookmarkTimer::new(clock::now(), options.ends));
        let timer = StreamTimer::new(options.shutdown, first(bookmarks.as_ref(), options.ends));
        let pinned = watcher.as_ref().and_then(|watcher| watcher.pinned());
        Self {
            framer: Framer::new(options.view, options.clock, &options.counts, options.recent_frames),
            watcher,
            pending: VecDeque::new(),
            backlog: Arc::new(Backlog::new(pinned)),
            failure,
            initial,
            bookmarks,
            ends: options.ends,
            timer,
            work: WorkMeter::default(),
            yields: false,
        }
    }

    /// The next piece of the body; `None` ends it.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if std::mem::take(&mut self.yields) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        // What is left of the last batch is dropped if the watch has to end meanwhile.
        if !self.pending.is_empty() && self.is_over(context) {
            self.pending.clear();
            self.backlog.clear();
        }
        loop {
            if let Some(error) = self.failure.take() {
                self.watcher = None;
                return Poll::Ready(Some(self.framer.error(&error)));
            }
            let piece = self.take_pending();
            if !piece.is_empty() {
                return Poll::Ready(Some(piece));
            }
            if self.failure.is_some() {
                continue;
            }
            match ready!(self.poll_wake(context)) {
                Wake::Events => {}
                Wake::Bookmark => {
                    if let Some(piece) = self.periodic_bookmark() {
                        return Poll::Ready(Some(piece));
                    }
                }
                Wake::End => return Poll::Ready(None),
            }
        }
    }

    fn poll_wake(&mut self, context: &mut Context<'_>) -> Poll<Wake> {
        let Some(watcher) = &mut self.watcher else { return Poll::Ready(Wake::End) };
        // First: events that never pause must not keep the timer from being polled.
        if let Poll::Ready(fired) = self.timer.poll(context) {
            return Poll::Ready(if ends(fired, self.ends) { Wake::End } else { Wake::Bookmark });
        }
        let more = ready!(watcher.poll_next(context, &mut self.pending));
        if self.pending.len() > 1 {
            // A single event is sent at once.
            self.backlog.set(self.pending.iter());
        }
        Poll::Ready(if more { Wake::Events } else { Wake::End })
    }

    /// Whether the watch has to end now.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        matches!(self.timer.poll(context), Poll::Ready(fired) if ends(fired, self.ends))
    }

    /// Frames waiting events, up to a piece or a step of decoding.
    fn take_pending(&mut self) -> Bytes {
        if self.pending.is_empty() {
            return Bytes::new();
        }
        if let Some(piece) = self.take_only() {
            return piece;
        }
        let mut out = BytesMut::new();
        while out.len() < PIECE && self.failure.is_none() && !self.yields {
            let Some(event) = self.pending.pop_front() else { break };
            let bytes = self.backlog.less(&event);
            self.yields = !self.framer.is_plain() && self.work.count(bytes);
            self.frame(event, &mut out);
        }
        out.freeze()
    }

    /// Frames the only event that waits, if it is of an object.
    fn take_only(&mut self) -> Option<Bytes> {
        let ([event], []) = self.pending.as_slices() else { return None };
        let (type_, stored) = match event {
            WatchEvent::Added(stored) => ("ADDED", stored),
            WatchEvent::Modified(stored) => ("MODIFIED", stored),
            WatchEvent::Deleted(stored) => ("DELETED", stored),
            WatchEvent::Bookmark { .. } | WatchEvent::Failed(_) => return None,
        };
        let piece = self.framer.alone(type_, stored);
        self.pending.clear();
        self.backlog.clear();
        Some(piece)
    }

    fn frame(&mut self, event: WatchEvent, out: &mut BytesMut) {
        match event {
            WatchEvent::Added(stored) => self.framer.object("ADDED", &stored, out),
            WatchEvent::Modified(stored) => self.framer.object("MODIFIED", &stored, out),
            WatchEvent::Deleted(stored) => self.framer.object("DELETED", &stored, out),
            WatchEvent::Bookmark { revision, initial } => {
                if let Some(events) = self.initial.take_if(|_| initial) {
                    events.sent();
                }
                if self.bookmarks.is_some() {
                    self.framer.bookmark(revision.0, initial, out);
                }
            }
            WatchEvent::Failed(error) => {
                self.failure =
                    Some(crate::wire::storage_error::translate(error, self.framer.names(), "", "watch"));
            }
        }
    }

    fn periodic_bookmark(&mut self) -> Option<Bytes> {
        self.bookmarks.as_mut()?.passed(clock::now());
        self.timer.set(first(self.bookmarks.as_ref(), self.ends));
        let revision = self.watcher.as_ref()?.progress().0;
        if revision == 0 {
            return None;
        }
        let mut out = BytesMut::new();
        self.framer.bookmark(revision, false, &mut out);
        Some(out.freeze())
    }
}

/// When the timer fires next.
fn first(bookmarks: Option<&BookmarkTimer>, ends: Instant) -> Instant {
    bookmarks.map_or(ends, |timer| timer.due().min(ends))
}

/// Whether the timer has fired for the end.
fn ends(fired: Fired, end: Instant) -> bool {
    fired == Fired::Shutdown || clock::now() >= end
}

#[cfg(test)]
mod tests;
