//! Requests that compute for long, on threads of their own: the workers that serve everybody, probes among them, are
//! not held up by them.
//!
//! Such a request keeps its thread while it waits for others; while it computes it takes turns with the rest, so that
//! at most half of the cores work for them.

use std::num::NonZero;
use std::panic;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread::available_parallelism;
use std::time::Instant;

use drydock_machinery::ApiError;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::fair_budget::FairBudget;
use crate::user::User;

/// Threads for such requests, shared fairly between users.
const THREADS: usize = 64;

/// Runs requests on threads of their own.
#[derive(Debug)]
pub struct Offload {
    threads: Arc<FairBudget>,
    turns: Arc<[Mutex<()>]>,
    next: AtomicUsize,
}

impl Default for Offload {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        let turns = (0..(cores / 2).max(1)).map(|_| Mutex::new(())).collect();
        let why = "Too many requests with large bodies, please try again later.";
        Self { threads: Arc::new(FairBudget::new(THREADS, why)), turns, next: AtomicUsize::new(0) }
    }
}

impl Offload {
    /// Runs a request of this user on another thread, and ends it when nobody waits for it any longer.
    ///
    /// # Errors
    /// 429 if no thread becomes free in time, 503 while the server stops.
    pub async fn run<T: Send + 'static>(
        &self,
        user: &Arc<User>,
        deadline: Instant,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let mut place = self.threads.share(user, deadline);
        place.take(1).await?;
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.turns.len();
        let request = Box::pin(request.instrument(Span::current()));
        let request = InTurn { request, turns: self.turns.clone(), turn };
        let abandoned = CancellationToken::new();
        let _abandon = abandoned.clone().drop_guard();
        let runtime = Handle::current();
        let work = move || {
            let _place = place;
            runtime.block_on(abandoned.run_until_cancelled(request))
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(Some(done)) => Ok(done),
            Err(ended) if ended.is_panic() => panic::resume_unwind(ended.into_panic()),
            Ok(None) | Err(_) => {
                Err(ApiError::service_unavailable("the server is stopping").with_retry_after(1))
            }
        }
    }
}

/// A request that computes only while it has its turn.
struct InTurn<T> {
    request: Pin<Box<dyn Future<Output = T> + Send>>,
    turns: Arc<[Mutex<()>]>,
    turn: usize,
}

impl<T> Future for InTurn<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let turns = self.turns.clone();
        // The thread belongs to this request: nobody else waits while it does.
        let _turn = turns.get(self.turn).map(Mutex::lock);
        self.request.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;
    use futures::FutureExt;

    fn user() -> Arc<User> {
        Arc::new(User { name: "a".to_owned(), ..User::default() })
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[tokio::test]
    async fn what_computes_does_so_on_another_thread() {
        let here = std::thread::current().id();
        let offload = Offload::default();
        let there = offload.run(&user(), soon(), async { std::thread::current().id() }).await.unwrap();
        assert_ne!(here, there);
        assert_eq!(offload.threads.free(), THREADS);
    }

    #[tokio::test]
    async fn a_worker_goes_on_while_a_request_computes() {
        let offload = Offload::default();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let request = async move {
            begin.send(()).unwrap();
            told.recv_timeout(Duration::from_secs(20)).unwrap()
        };
        let user = user();
        let computing = offload.run(&user, soon(), request);
        // This thread is the only worker: were the request run here, nobody would tell it.
        let telling = async {
            begun.await.unwrap();
            tell.send(7).unwrap();
        };
        let (done, ()) = tokio::join!(computing, telling);
        assert_eq!(done.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_request_that_nobody_waits_for_ends_and_gives_its_thread_back() {
        let offload = Offload::default();
        let user = user();
        let (held, dropped) = tokio::sync::oneshot::channel::<()>();
        let request = async move {
            let _held = held;
            std::future::pending::<()>().await;
        };
        let mut waiting = Box::pin(offload.run(&user, soon(), request));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(waiting);
        assert!(dropped.await.is_err());
    }

    #[tokio::test]
    async fn a_panic_reaches_whoever_waits() {
        let offload = Offload::default();
        let user = user();
        let run = offload.run(&user, soon(), async { std::panic::resume_unwind(Box::new("oh")) });
        let caught: Result<Result<(), _>, _> = std::panic::AssertUnwindSafe(run).catch_unwind().await;
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"oh"));
    }

    #[tokio::test]
    async fn one_user_takes_half_of_the_threads() {
        let offload = Offload::default();
        let user = user();
        let mut kept = Vec::new();
        for _ in 0..THREADS {
            let mut place = offload.threads.share(&user, soon());
            if place.take(1).now_or_never().is_none() {
                break;
            }
            kept.push(place);
        }
        assert_eq!(kept.len(), THREADS / 2);
    }
}
