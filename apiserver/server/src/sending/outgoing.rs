//! The body of an open answer: it goes out in pieces, and each of them counts until the transport has taken it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::answer::{Answer, SMALL};
use crate::metrics::Sizes;

/// Most bytes of a piece: what HTTP/2 sends in a frame, unless the client asks for larger ones.
const PIECE: usize = 16 * 1024;

/// A body in pieces.
pub(super) struct Outgoing<G> {
    inner: Body,
    answer: Arc<Answer<G>>,
    /// What is left of a frame, and what is freed with its last piece.
    rest: Bytes,
    frees: usize,
    /// Whether the length of the body is known, so that its last piece says that it is the last.
    whole: bool,
    over: bool,
    sent: u64,
    sizes: Option<Sizes>,
}

impl<G: Send + 'static> Outgoing<G> {
    /// Sends `inner`, and counts in `sizes` how much it was once it has been sent.
    pub(super) fn new(inner: Body, answer: Arc<Answer<G>>, sizes: Option<Sizes>) -> Self {
        let length = inner.size_hint().exact();
        if let Some(bytes) = length {
            // It is at hand, and held as a whole for as long as the answer is.
            answer.record.charge(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        let whole = length.is_some();
        Self { inner, answer, rest: Bytes::new(), frees: 0, whole, over: false, sent: 0, sizes }
    }

    fn take(&mut self, frame: Bytes) {
        if !self.whole {
            self.frees = self.answer.record.charge(frame.len());
        }
        self.rest = frame;
    }

    /// The next piece of the frame. The last one of all is small: the task of the stream ends with it, whether the
    /// client takes it or not.
    fn piece(&mut self) -> Bytes {
        let length = match self.rest.len() {
            left if left > PIECE => PIECE,
            left if left > SMALL && self.whole => left - SMALL,
            left => left,
        };
        let bytes = self.rest.split_to(length);
        let frees = if self.rest.is_empty() { std::mem::take(&mut self.frees) } else { 0 };
        self.sent += length as u64;
        self.answer.record.give(length);
        Bytes::from_owner(Piece { bytes, frees, answer: self.answer.clone() })
    }

    fn end(&mut self) {
        self.over = true;
        if let Some(sizes) = self.sizes.take() {
            sizes.observe(self.sent);
        }
    }
}

impl<G: Send + 'static> HttpBody for Outgoing<G> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            if !self.rest.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(self.piece()))));
            }
            if self.over {
                // The end comes once the client has nearly everything: until then the stream can be reset.
                let ends = self.answer.record.is_nearly_read(context);
                return if ends { Poll::Ready(None) } else { Poll::Pending };
            }
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.take(data),
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                Some(Err(error)) => {
                    self.end();
                    return Poll::Ready(Some(Err(error)));
                }
                None => self.end(),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.whole && self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Bytes that the transport was given.
struct Piece<G> {
    bytes: Bytes,
    /// So many bytes are freed with it.
    frees: usize,
    answer: Arc<Answer<G>>,
}

impl<G> AsRef<[u8]> for Piece<G> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<G> Drop for Piece<G> {
    fn drop(&mut self) {
        self.answer.record.took(self.bytes.len(), self.frees);
    }
}
