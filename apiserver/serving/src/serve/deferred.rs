//! Polls a connection after all tasks that are ready, so that it writes once.
//!
//! An event goes out to many streams of one connection. Woken by the first of them, the connection would encrypt and
//! write a frame, and the same for each of the others; woken last, it takes what all of them have to say in one write.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

use super::write_coalescing::Outbox;

/// A connection that is polled one pass of the scheduler after it was woken, and the outbox that it writes into.
pub(super) struct DeferredConnection<C, T> {
    /// The connection.
    pub(super) connection: C,
    outbox: Outbox<T>,
    waited: bool,
}

impl<C, T> DeferredConnection<C, T> {
    /// `connection` writes into `outbox`.
    pub(super) fn new(connection: C, outbox: Outbox<T>) -> Self {
        Self { connection, outbox, waited: false }
    }
}

impl<C, T: AsyncWrite + Unpin> DeferredConnection<C, T> {
    /// Sends what waits, then the end of the stream.
    pub(super) fn poll_shutdown(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outbox.poll_shutdown(context)
    }
}

impl<C, T, E> Future for DeferredConnection<C, T>
where
    C: Future<Output = Result<(), E>> + Unpin,
    T: AsyncWrite + Unpin,
    E: From<io::Error>,
{
    type Output = Result<(), E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.waited = !self.waited;
        if self.waited {
            // A task that wakes itself goes to the end of its queue.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Poll::Ready(ended) = Pin::new(&mut self.connection).poll(context) {
            return Poll::Ready(ended);
        }
        match self.outbox.poll_send(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures::poll;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::write_coalescing::coalesce;
    use super::*;

    #[tokio::test]
    async fn a_connection_is_polled_in_the_turn_after_the_one_that_woke_it() {
        let (polls, (_, outbox)) = (RefCell::new(0), coalesce(tokio::io::sink(), None));
        let counted = std::future::poll_fn(|_| {
            *polls.borrow_mut() += 1;
            Poll::<io::Result<()>>::Pending
        });
        let mut deferred = DeferredConnection::new(counted, outbox);
        assert!(poll!(&mut deferred).is_pending());
        assert_eq!(*polls.borrow(), 0);
        assert!(poll!(&mut deferred).is_pending());
        assert_eq!(*polls.borrow(), 1);
    }

    #[tokio::test]
    async fn it_ends_when_the_connection_does() {
        let (_, outbox) = coalesce(tokio::io::sink(), None);
        let ended =
            DeferredConnection::new(std::future::ready(Err(io::ErrorKind::BrokenPipe.into())), outbox).await;
        assert!(ended.is_err_and(|error: io::Error| error.kind() == io::ErrorKind::BrokenPipe));
    }

    #[tokio::test]
    async fn what_a_turn_writes_is_sent_at_its_end_though_the_connection_goes_on() {
        let (near, mut far) = tokio::io::duplex(64);
        let (mut near, outbox) = coalesce(near, None);
        let writes = Box::pin(async move {
            near.write_all(b"one").await?;
            near.flush().await?;
            near.write_all(b"two").await?;
            near.flush().await?;
            std::future::pending::<io::Result<()>>().await
        });
        let mut deferred = DeferredConnection::new(writes, outbox);
        let mut read = [0; 6];
        tokio::select! {
            _ = &mut deferred => unreachable!("it goes on"),
            all = far.read_exact(&mut read) => assert!(all.is_ok()),
        }
        assert_eq!(&read, b"onetwo");
    }

    #[tokio::test]
    async fn it_ends_when_what_it_wrote_cannot_be_sent() {
        let (near, far) = tokio::io::duplex(64);
        drop(far);
        let (mut near, outbox) = coalesce(near, None);
        let writes = Box::pin(async move {
            near.write_all(b"one").await?;
            std::future::pending::<io::Result<()>>().await
        });
        assert!(DeferredConnection::new(writes, outbox).await.is_err());
    }
}
