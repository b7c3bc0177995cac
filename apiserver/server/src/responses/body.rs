//! The body of an open response: it goes out in pieces, which count until the transport has taken them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::open_response::{OpenResponse, SMALL};
use crate::metrics::Sizes;

/// Maximum bytes of a piece: what HTTP/2 sends in a frame, unless the client asks for larger ones.
const PIECE: usize = 16 * 1024;

/// A body in pieces.
pub struct ResponseBody<G> {
    inner: Body,
    /// Where it is counted. None if there is nothing to send.
    open_response: Option<Arc<OpenResponse<G>>>,
    /// What is left of a frame, and what is freed with its last piece.
    rest: Bytes,
    frees: usize,
    /// Bytes that were given out and are not counted yet, and those of them that are of small frames.
    uncounted: usize,
    small: usize,
    /// Whether the length of the body is known, so that its last piece says that it is the last.
    is_whole: bool,
    state: State,
    /// What follows the last piece.
    trailers: Option<Box<HeaderMap>>,
    sent: u64,
    sizes: Option<Sizes>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The inner body has ended.
    Over,
    /// The last piece was given out.
    Ended,
}

/// Bytes for the transport.
pub struct Piece<G> {
    bytes: Bytes,
    _count: Option<Count<G>>,
}

/// What is counted with a piece, until the transport has taken the piece or dropped it.
struct Count<G> {
    open_response: Arc<OpenResponse<G>>,
    /// Bytes that were given out since the last counted piece.
    bytes: usize,
    /// Number of bytes that are freed with it.
    frees: usize,
}

impl<G: Send + 'static> ResponseBody<G> {
    /// A body that is not counted, because it has nothing to send.
    pub(super) fn empty(inner: Body) -> Self {
        Self {
            inner,
            open_response: None,
            rest: Bytes::new(),
            frees: 0,
            uncounted: 0,
            small: 0,
            is_whole: true,
            state: State::Open,
            trailers: None,
            sent: 0,
            sizes: None,
        }
    }

    /// Sends `inner`, and counts in `sizes` how much it was once it has been sent.
    pub(super) fn new(inner: Body, open_response: Arc<OpenResponse<G>>, sizes: Option<Sizes>) -> Self {
        let length = inner.size_hint().exact();
        if let Some(bytes) = length {
            // The whole body is in memory for as long as the response is open.
            open_response.account.charge(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        let is_whole = length.is_some();
        Self { open_response: Some(open_response), is_whole, sizes, ..Self::empty(inner) }
    }

    fn take(&mut self, frame: Bytes) {
        match &self.open_response {
            Some(_) if self.is_whole => {}
            Some(open_response) if frame.len() > SMALL => {
                self.frees = frame.len();
                open_response.account.charge(self.frees);
            }
            _ => self.small += frame.len(),
        }
        self.rest = frame;
    }

    /// The next piece of the frame. The last one of all is small: the task of the stream ends with it, whether the
    /// client takes it or not.
    fn piece(&mut self) -> Piece<G> {
        let length = match self.rest.len() {
            left if left > PIECE => PIECE,
            left if left > SMALL && self.is_whole => left - SMALL,
            left => left,
        };
        let bytes = self.rest.split_to(length);
        let frees = if self.rest.is_empty() { std::mem::take(&mut self.frees) } else { 0 };
        self.sent += length as u64;
        self.uncounted += length;
        if let Some(open_response) = &self.open_response {
            open_response.account.give(length);
        }
        // Counting each small frame of a watch would cost more than making most of them.
        let is_counted = self.is_whole || frees > 0 || self.uncounted > SMALL;
        Piece { bytes, _count: if is_counted { self.count(frees) } else { None } }
    }

    /// Counts what was given out since the last call.
    fn count(&mut self, frees: usize) -> Option<Count<G>> {
        let open_response = self.open_response.clone()?;
        let (bytes, small) = (std::mem::take(&mut self.uncounted), std::mem::take(&mut self.small));
        open_response.account.count(bytes);
        if self.is_whole {
            return Some(Count { open_response, bytes, frees: 0 });
        }
        open_response.account.charge(small);
        Some(Count { open_response, bytes, frees: frees + small })
    }

    /// Gives the end of the body once the client has nearly everything: until then the stream can be reset. It is an
    /// empty piece, or the trailers, and keeps the response until the transport has taken all that was before it. An
    /// empty piece before trailers would be counted against us: clients with h2 close a connection on which 100 of
    /// them have come.
    fn poll_end(&mut self, context: &Context<'_>) -> Poll<Frame<Piece<G>>> {
        let uncounted = self.uncounted;
        if self
            .open_response
            .as_ref()
            .is_some_and(|open_response| !open_response.account.is_nearly_read(uncounted, context))
        {
            return Poll::Pending;
        }
        self.state = State::Ended;
        let count = self.count(0);
        Poll::Ready(match self.trailers.take() {
            Some(trailers) => Frame::trailers(keeping(*trailers, count)),
            None => Frame::data(Piece { bytes: Bytes::new(), _count: count }),
        })
    }

    fn over(&mut self) {
        self.state = State::Over;
        if let Some(sizes) = self.sizes.take() {
            sizes.observe(self.sent);
        }
    }
}

impl<G: Send + 'static> HttpBody for ResponseBody<G> {
    type Data = Piece<G>;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece<G>>, axum::Error>>> {
        loop {
            if !self.rest.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(self.piece()))));
            }
            match self.state {
                State::Open => {}
                State::Over => return self.poll_end(context).map(|end| Some(Ok(end))),
                State::Ended => return Poll::Ready(None),
            }
            let Poll::Ready(next) = Pin::new(&mut self.inner).poll_frame(context) else {
                if let Some(open_response) = &self.open_response {
                    open_response.account.idles();
                }
                return Poll::Pending;
            };
            match next {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.take(data),
                    Err(frame) => self.trailers = frame.into_trailers().ok().map(Box::new),
                },
                Some(Err(error)) => {
                    self.over();
                    return Poll::Ready(Some(Err(error)));
                }
                None => self.over(),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.state == State::Ended || (self.is_whole && self.rest.is_empty() && self.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The same trailers, the first of which keeps `guard` until the transport has taken it.
fn keeping<T: Send + 'static>(mut trailers: HeaderMap, guard: T) -> HeaderMap {
    if let Some(value) = trailers.values_mut().next() {
        let bytes = Bytes::from_owner(Guarded { bytes: value.as_bytes().to_vec(), _guard: guard });
        if let Ok(same) = HeaderValue::from_maybe_shared(bytes) {
            *value = same;
        }
    }
    trailers
}

/// Bytes that keep something.
struct Guarded<T> {
    bytes: Vec<u8>,
    _guard: T,
}

impl<T> AsRef<[u8]> for Guarded<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<G> Buf for Piece<G> {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

impl<G> Drop for Count<G> {
    fn drop(&mut self) {
        self.open_response.account.took(self.bytes, self.frees);
    }
}
