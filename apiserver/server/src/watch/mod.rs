//! Serving a watch: one task-free stream that ends by itself
//! (k8s.io/apiserver/pkg/endpoints/handlers/watch.go).
//!
//! ```text
//!   Watcher ──batch──▶ pending ──frame──▶ pieces of at most 64 KiB ──▶ body
//!   deadline, shutdown ──▶ end        bookmark timer ──▶ bookmark
//! ```

mod alarm;
mod bookmarks;
mod frame;
mod recent;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use drydock_machinery::ApiError;
use drydock_storage::storage::{WatchEvent, Watcher};
use futures::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use tokio_util::sync::CancellationToken;

use crate::encode::ObjectView;
use crate::metrics::WatchEvents;
use crate::negotiate::Format;
use alarm::{Alarm, Rang};
use bookmarks::BookmarkTimer;
use frame::Framer;
pub use recent::Recent;

/// A watch that is about to be served.
pub struct Opening {
    /// How objects are shown.
    pub view: ObjectView,
    /// Whether the client takes bookmarks.
    pub bookmarks: bool,
    /// When the watch ends.
    pub ends: Instant,
    /// Ends it earlier.
    pub shutdown: CancellationToken,
    /// Counts what is sent.
    pub counts: WatchEvents,
    /// What the watches of the same objects have framed.
    pub recent: Arc<Recent>,
    /// The events, or the error that is the only one.
    pub watcher: Result<Box<dyn Watcher>, ApiError>,
}

/// A piece is sent when it has grown to this.
const PIECE: usize = 64 * 1024;

/// The response that streams a watch.
pub fn serve(opening: Opening) -> Response<Body> {
    let media_type = match opening.view.output.format {
        Format::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        _ => "application/json",
    };
    let state = Stream::new(opening);
    let pieces = stream::unfold(state, |mut state| async move {
        let piece = state.next_piece().await?;
        Some((Ok::<_, Infallible>(piece), state))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

struct Stream {
    framer: Framer,
    watcher: Option<Box<dyn Watcher>>,
    pending: VecDeque<WatchEvent>,
    failure: Option<ApiError>,
    bookmarks: Option<BookmarkTimer>,
    ends: Instant,
    /// Rings at the next bookmark or at the end, whichever is first.
    alarm: Alarm,
}

enum Wake {
    Events(Option<Vec<WatchEvent>>),
    Bookmark,
    End,
}

impl Stream {
    fn new(opening: Opening) -> Self {
        let (watcher, failure) = match opening.watcher {
            Ok(watcher) => (Some(watcher), None),
            Err(error) => (None, Some(error)),
        };
        let bookmarks = opening.bookmarks.then(|| BookmarkTimer::new(Instant::now(), opening.ends));
        let alarm = Alarm::new(opening.shutdown, first(bookmarks.as_ref(), opening.ends));
        Self {
            framer: Framer::new(opening.view, &opening.counts, opening.recent),
            watcher,
            pending: VecDeque::new(),
            failure,
            bookmarks,
            ends: opening.ends,
            alarm,
        }
    }

    /// The next piece of the body; `None` ends it.
    async fn next_piece(&mut self) -> Option<Bytes> {
        // What has come since the last wait is sent at once; what is left of it may have grown old.
        if !self.pending.is_empty() && self.is_over().await {
            self.pending.clear();
        }
        loop {
            if let Some(error) = self.failure.take() {
                self.watcher = None;
                return Some(self.framer.error(&error));
            }
            let piece = self.take_pending();
            if !piece.is_empty() {
                return Some(piece);
            }
            if self.failure.is_some() {
                continue;
            }
            match self.wake().await {
                Wake::Events(Some(events)) => self.pending.extend(events),
                Wake::Bookmark => {
                    if let Some(piece) = self.periodic_bookmark() {
                        return Some(piece);
                    }
                }
                Wake::Events(None) | Wake::End => return None,
            }
        }
    }

    async fn wake(&mut self) -> Wake {
        let Some(watcher) = &mut self.watcher else { return Wake::End };
        tokio::select! {
            // Events that never pause must not keep the alarm from being heard.
            biased;
            rang = poll_fn(|context| self.alarm.poll(context)) => {
                if ends(rang, self.ends) { Wake::End } else { Wake::Bookmark }
            }
            events = watcher.next() => Wake::Events(events),
        }
    }

    /// Whether the watch has to end now.
    async fn is_over(&mut self) -> bool {
        let rang = poll_fn(|context| Poll::Ready(self.alarm.poll(context))).await;
        matches!(rang, Poll::Ready(rang) if ends(rang, self.ends))
    }

    /// Frames waiting events, up to a piece.
    fn take_pending(&mut self) -> Bytes {
        if let Some(piece) = self.take_only() {
            return piece;
        }
        let mut out = BytesMut::new();
        while out.len() < PIECE && self.failure.is_none() {
            let Some(event) = self.pending.pop_front() else { break };
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
        Some(piece)
    }

    fn frame(&mut self, event: WatchEvent, out: &mut BytesMut) {
        match event {
            WatchEvent::Added(stored) => self.framer.object("ADDED", &stored, out),
            WatchEvent::Modified(stored) => self.framer.object("MODIFIED", &stored, out),
            WatchEvent::Deleted(stored) => self.framer.object("DELETED", &stored, out),
            WatchEvent::Bookmark { revision, initial } => {
                if self.bookmarks.is_some() {
                    self.framer.bookmark(revision.0, initial, out);
                }
            }
            WatchEvent::Failed(error) => {
                self.failure = Some(crate::storage_error::translate(error, self.framer.names(), "", "watch"));
            }
        }
    }

    fn periodic_bookmark(&mut self) -> Option<Bytes> {
        self.bookmarks.as_mut()?.passed(Instant::now());
        self.alarm.set(first(self.bookmarks.as_ref(), self.ends));
        let revision = self.watcher.as_ref()?.progress().0;
        if revision == 0 {
            return None;
        }
        let mut out = BytesMut::new();
        self.framer.bookmark(revision, false, &mut out);
        Some(out.freeze())
    }
}

/// When the clock rings next.
fn first(bookmarks: Option<&BookmarkTimer>, ends: Instant) -> Instant {
    bookmarks.map_or(ends, |timer| timer.due().min(ends))
}

/// Whether an alarm means the end.
fn ends(rang: Rang, end: Instant) -> bool {
    rang == Rang::Shutdown || Instant::now() >= end
}
