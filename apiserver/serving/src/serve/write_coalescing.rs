//! Write coalescing: what a connection writes in one turn leaves in one write. A turn is one poll of the connection.
//!
//! HTTP/2 flushes after each frame of more than some hundred bytes: one event to fifty streams of a connection would
//! be fifty TLS records and fifty writes. Here a flush does nothing: the task of the connection sends what has been
//! written when the connection has nothing more to write ([`Outbox::poll_send`]).

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum bytes that wait, here and then as TLS records: an event of usual size for fifty streams leaves in one
/// write.
pub(super) const WRITE_BUFFER: usize = 128 * 1024;
/// Maximum bytes that a connection reads in a turn. HTTP/2 takes every frame that is there before it looks at the
/// first request: this bounds how many requests it takes at once, whatever a client has sent, and how long other
/// connections wait for their turns.
const READ: usize = 16 * 1024;
/// Maximum bytes copied at once. From a little above this on, glibc leaves a copy to one instruction of the
/// processor (glibc.cpu.x86_rep_movsb_threshold), which is ten times slower on some when the target is not aligned.
/// Behind the head of a frame or of a TLS record it never is.
const PART: usize = 2 * 1024;

thread_local! {
    /// The buffer of one turn, which the connections of a thread share: nearly always it is sent before the next
    /// connection's turn.
    static TURN_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A stream over `inner` whose writes wait in an outbox until the end of a turn.
/// `seen` is called with what is read.
pub(super) fn coalesce<T>(inner: T, seen: Option<Seen>) -> (CoalescingStream<T>, Outbox<T>) {
    let state = State { inner, seen, waiting: Vec::new(), sent: 0, flushed: true, may_read: READ };
    let state = Arc::new(Mutex::new(state));
    (CoalescingStream(state.clone()), Outbox(state))
}

/// The stream that the connection reads from and writes to.
pub(super) struct CoalescingStream<T>(Arc<Mutex<State<T>>>);

/// What waits to be written.
pub(super) struct Outbox<T>(Arc<Mutex<State<T>>>);

/// Looks at what a client sends.
pub(super) type Seen = Box<dyn FnMut(&[u8]) + Send>;

struct State<T> {
    inner: T,
    seen: Option<Seen>,
    waiting: Vec<u8>,
    /// Number of bytes of `waiting` that have been written.
    sent: usize,
    flushed: bool,
    /// Bytes that may still be read in this turn.
    may_read: usize,
}

impl<T: AsyncWrite + Unpin> Outbox<T> {
    /// Ends a turn: sends all that waits, and lets the next turn read. To be called each time that the connection
    /// has been polled.
    pub(super) fn poll_send(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = &mut *self.0.lock();
        state.may_read = READ;
        state.poll_send(context)
    }

    /// Sends all that waits, then the end of the stream.
    pub(super) fn poll_shutdown(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().poll_shutdown(context)
    }
}

impl<T: AsyncWrite + Unpin> State<T> {
    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_empty(context))?;
        if !self.flushed {
            ready!(Pin::new(&mut self.inner).poll_flush(context))?;
            self.flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_empty(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.waiting.len() {
            let mut parts = [IoSlice::new(&[]); WRITE_BUFFER / PART];
            let rest = self.waiting[self.sent..].chunks(PART);
            let count = parts.iter_mut().zip(rest).map(|(part, rest)| *part = IoSlice::new(rest)).count();
            let written = ready!(Pin::new(&mut self.inner).poll_write_vectored(context, &parts[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += written;
            self.flushed = false;
        }
        if self.sent > 0 {
            // Most connections are idle most of the time: they hold no buffer then.
            let mut room = std::mem::take(&mut self.waiting);
            room.clear();
            self.sent = 0;
            TURN_BUFFER.set(room);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_take(&mut self, context: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.waiting.len() >= WRITE_BUFFER {
            ready!(self.poll_empty(context))?;
        }
        if self.waiting.capacity() == 0 {
            self.waiting = TURN_BUFFER.take();
            self.waiting.reserve_exact(WRITE_BUFFER);
        }
        let before = self.waiting.len();
        for piece in pieces {
            let room = WRITE_BUFFER - self.waiting.len();
            for part in piece[..piece.len().min(room)].chunks(PART) {
                self.waiting.extend_from_slice(part);
            }
        }
        Poll::Ready(Ok(self.waiting.len() - before))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for CoalescingStream<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let state = &mut *self.0.lock();
        if state.may_read == 0 {
            // The TLS session may hold more bytes, for which the socket does not wake the task.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let (inner, before) = (Pin::new(&mut state.inner), into.filled().len());
        let read = if into.remaining() <= state.may_read {
            ready!(inner.poll_read(context, into))?;
            into.filled().len() - before
        } else {
            let mut part = ReadBuf::new(into.initialize_unfilled_to(state.may_read));
            ready!(inner.poll_read(context, &mut part))?;
            let read = part.filled().len();
            into.advance(read);
            read
        };
        state.may_read -= read;
        if let Some(seen) = &mut state.seen {
            seen(&into.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for CoalescingStream<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().poll_take(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().poll_take(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The end of the turn flushes.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::poll;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn send<T: AsyncWrite + Unpin>(outbox: &Outbox<T>) -> io::Result<()> {
        std::future::poll_fn(|context| outbox.poll_send(context)).await
    }

    /// Counts the writes of what it wraps.
    struct Counting<T>(T, Arc<Mutex<Vec<usize>>>);

    impl<T: AsyncWrite + Unpin> AsyncWrite for Counting<T> {
        fn poll_write(mut self: Pin<&mut Self>, c: &mut Context<'_>, b: &[u8]) -> Poll<io::Result<usize>> {
            self.1.lock().push(b.len());
            Pin::new(&mut self.0).poll_write(c, b)
        }

        fn poll_flush(mut self: Pin<&mut Self>, c: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(c)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, c: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(c)
        }
    }

    #[tokio::test]
    async fn what_is_flushed_piece_by_piece_is_written_once() {
        let writes = Arc::default();
        let (mut near, outbox) = coalesce(Counting(tokio::io::sink(), Arc::clone(&writes)), None);
        for piece in [&b"head"[..], b"of", b"a frame"] {
            near.write_all(piece).await.unwrap();
            near.flush().await.unwrap();
        }
        assert!(writes.lock().is_empty());
        send(&outbox).await.unwrap();
        assert_eq!(*writes.lock(), [13]);
        send(&outbox).await.unwrap();
        assert_eq!(*writes.lock(), [13], "nothing is left");
    }

    #[tokio::test]
    async fn who_does_not_read_is_not_written_for_without_bound() {
        let (near, mut far) = tokio::io::duplex(10);
        let (mut near, outbox) = coalesce(near, None);
        near.write_all(&[1; WRITE_BUFFER]).await.unwrap();
        let more = near.write_all(&[2; 10]);
        tokio::pin!(more);
        assert!(poll!(more.as_mut()).is_pending());
        let (mut first, mut rest) = (vec![0; WRITE_BUFFER], vec![0; 10]);
        let (read, wrote) = tokio::join!(far.read_exact(&mut first), more);
        assert!(read.is_ok() && wrote.is_ok());
        let (read, sent) = tokio::join!(far.read_exact(&mut rest), send(&outbox));
        assert!(read.is_ok() && sent.is_ok());
        assert!(first.iter().all(|byte| *byte == 1) && rest.iter().all(|byte| *byte == 2));
    }

    #[tokio::test]
    async fn a_turn_reads_so_much_and_the_next_one_goes_on() {
        let (near, mut far) = tokio::io::duplex(4 * READ);
        let (mut near, outbox) = coalesce(near, None);
        far.write_all(&[1; 2 * READ]).await.unwrap();
        let mut read = vec![0; 2 * READ];
        assert_eq!(near.read(&mut read).await.unwrap(), READ);
        let more = near.read(&mut read);
        tokio::pin!(more);
        assert!(poll!(more.as_mut()).is_pending());
        send(&outbox).await.unwrap();
        assert_eq!(more.await.unwrap(), READ);
    }

    #[tokio::test]
    async fn the_end_comes_after_what_was_written() {
        let (near, mut far) = tokio::io::duplex(64);
        let (mut near, _outbox) = coalesce(near, None);
        near.write_all(b"last words").await.unwrap();
        near.shutdown().await.unwrap();
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"last words");
    }
}
