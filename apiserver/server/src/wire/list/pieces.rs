//! A list on its way: made in steps, between which other tasks run, and gathered into pieces.

use std::convert::Infallible;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use drydock_serving::wire::{pretty, response};
use futures::{StreamExt, stream};

/// Bytes of a piece, without the object with which it ends.
pub const PIECE: usize = 64 * 1024;

/// Makes a list step by step.
pub trait Steps: Send {
    /// Appends the next objects, at least one: about [`PIECE`] bytes at most, decoded from about
    /// [`STEP`](drydock_storage::work_meter::STEP) bytes at most. Returns `false` after the end of the list, and is not
    /// called again.
    fn step(&mut self, out: &mut BytesMut) -> bool;
}

/// The pieces of a list.
pub struct Pieces {
    /// Absent after the last step.
    steps: Option<Box<dyn Steps>>,
    /// Whether a step takes long enough for other tasks to run after it.
    is_costly: bool,
    /// Whether there was a step, so that the next one comes after a yield.
    is_begun: bool,
}

impl Pieces {
    /// The pieces of what `steps` makes. A step that only copies bytes is not costly.
    pub fn new(steps: Box<dyn Steps>, is_costly: bool) -> Self {
        Self { steps: Some(steps), is_costly, is_begun: false }
    }

    /// The next piece. Yields between costly steps.
    pub async fn next(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        while out.len() < PIECE {
            let Some(steps) = &mut self.steps else { break };
            if std::mem::replace(&mut self.is_begun, true) && self.is_costly {
                tokio::task::yield_now().await;
            }
            // With room for the object with which the piece ends.
            out.reserve((PIECE + PIECE / 8).saturating_sub(out.len()));
            if !steps.step(&mut out) {
                self.steps = None;
            }
        }
        (!out.is_empty()).then(|| out.freeze())
    }

    /// A body of the pieces `first`, and those that follow.
    pub fn body(self, first: Vec<Bytes>) -> Body {
        let rest = stream::unfold(self, async |mut pieces| Some((pieces.next().await?, pieces)));
        Body::from_stream(stream::iter(first).chain(rest).map(Ok::<_, Infallible>))
    }

    /// The same compressed.
    pub fn compressed(self, first: Vec<Bytes>) -> Self {
        let (first, stream) = (first.into_iter(), Some(response::GzipStream::default()));
        let steps = Box::new(Compressed { first, inner: self.steps, stream });
        Self { steps: Some(steps), is_costly: true, is_begun: self.is_begun }
    }
}

/// gzip around other steps.
struct Compressed {
    /// What was made before.
    first: std::vec::IntoIter<Bytes>,
    inner: Option<Box<dyn Steps>>,
    stream: Option<response::GzipStream>,
}

impl Steps for Compressed {
    fn step(&mut self, out: &mut BytesMut) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        if let Some(made) = self.first.next() {
            out.extend_from_slice(&stream.push(&made));
            return true;
        }
        if let Some(inner) = &mut self.inner {
            let mut made = BytesMut::with_capacity(PIECE + PIECE / 8);
            if !inner.step(&mut made) {
                self.inner = None;
            }
            out.extend_from_slice(&stream.push(&made));
            return true;
        }
        let rest = self.stream.take().map(response::GzipStream::finish);
        out.extend_from_slice(&rest.unwrap_or_default());
        false
    }
}

/// Indents compact JSON.
pub struct Indented {
    inner: Box<dyn Steps>,
    indent: pretty::Indent,
}

impl Indented {
    /// `inner` makes compact JSON, and never ends a step within a string or an empty list.
    pub fn new(inner: Box<dyn Steps>) -> Self {
        Self { inner, indent: pretty::Indent::default() }
    }
}

impl Steps for Indented {
    fn step(&mut self, out: &mut BytesMut) -> bool {
        let mut compact = BytesMut::with_capacity(PIECE + PIECE / 8);
        let more = self.inner.step(&mut compact);
        out.extend_from_slice(&self.indent.push(&compact));
        more
    }
}
