//! A connection has its turn after everybody who is ready has had theirs.
//!
//! An event goes out to many streams of one connection. Woken by the first of them, the connection would encrypt and
//! write a frame, and the same for each of the others; woken last, it takes what all of them have to say in one write.

use std::pin::Pin;
use std::task::{Context, Poll};

/// `inner`, polled one turn of the scheduler after it was woken.
pub(super) fn last<F: Future + Unpin>(inner: F) -> Last<F> {
    Last { inner, waited: false }
}

/// See [`last`].
pub(super) struct Last<F> {
    inner: F,
    waited: bool,
}

impl<F: Future + Unpin> Future for Last<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.waited = !self.waited;
        if self.waited {
            // A task that wakes itself goes to the end of its queue.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Pin::new(&mut self.inner).poll(context)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn it_is_polled_in_the_turn_after_the_one_that_woke_it() {
        let polls = RefCell::new(0);
        let mut counted = last(std::future::poll_fn(|_| {
            *polls.borrow_mut() += 1;
            Poll::<()>::Pending
        }));
        assert!(poll!(&mut counted).is_pending());
        assert_eq!(*polls.borrow(), 0);
        assert!(poll!(&mut counted).is_pending());
        assert_eq!(*polls.borrow(), 1);
    }

    #[tokio::test]
    async fn it_ends_when_the_other_does() {
        assert_eq!(last(std::future::ready(7)).await, 7);
    }
}
