//! Runs requests that compute for long on threads of their own, so that they do not hold up the workers that serve
//! everybody, probes among them.
//!
//! Such a request keeps its thread while it waits for something. While it computes it has one of the [cores](cores),
//! which are half of the machine's, and at least one.

mod cores;

use std::num::NonZero;
use std::panic;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::available_parallelism;
use std::time::Instant;

use drydock_machinery::ApiError;
use drydock_serving::request::user::User;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::flow_control::PriorityLevel;
use crate::flow_control::fair_budget::FairBudget;
use cores::{Computing, Cores};

/// A request with a longer body runs there: such a body takes milliseconds to decode, merge and validate.
pub const LARGE_BODY: usize = 64 << 10;
/// Threads for such requests, shared fairly between users.
const THREADS: usize = 64;

/// Runs requests on threads of their own.
#[derive(Debug)]
pub struct Offload {
    threads: Arc<FairBudget>,
    cores: Arc<Cores>,
}

impl Default for Offload {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        let why = "Too many requests with large bodies, please try again later.";
        Self { threads: Arc::new(FairBudget::new(THREADS, why)), cores: Arc::new(Cores::new(cores / 2)) }
    }
}

impl Offload {
    /// Runs a request of this user on another thread, and ends it when this future is dropped.
    ///
    /// # Errors
    /// 429 if no thread becomes free in time, 503 while the server stops.
    pub async fn run<T: Send + 'static>(
        &self,
        user: &Arc<User>,
        level: PriorityLevel,
        deadline: Instant,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let mut thread = self.threads.holding(user, level, deadline);
        thread.take(1).await?;
        let comes_first = level.has_own_room() || !level.waits_for_room();
        let computing = self.cores.request(user.flow(), comes_first);
        let request = OnCore { request: Box::pin(request.instrument(Span::current())), computing };
        let abandoned = CancellationToken::new();
        let _abandon = abandoned.clone().drop_guard();
        let runtime = Handle::current();
        let work = move || {
            let _thread = thread;
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

/// A request that computes only while it has a core.
struct OnCore<T> {
    request: Pin<Box<dyn Future<Output = T> + Send>>,
    computing: Computing,
}

impl<T> Future for OnCore<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Self { request, computing } = &mut *self;
        // The thread is the request's own, so blocking it holds up no other task.
        let _core = computing.core();
        request.as_mut().poll(context)
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
        let there = offload
            .run(&user(), PriorityLevel::Everybody, soon(), async { std::thread::current().id() })
            .await
            .unwrap();
        assert_ne!(here, there);
        assert_eq!(offload.threads.free(), THREADS - THREADS / 4);
    }

    #[tokio::test]
    async fn a_worker_goes_on_while_a_request_computes() {
        let offload = Offload::default();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let request = async move {
            begin.send(()).unwrap();
            told.recv_timeout(Duration::from_secs(60)).unwrap()
        };
        let user = user();
        let computing = offload.run(&user, PriorityLevel::Everybody, soon(), request);
        // This thread is the only worker: if the request ran here, nothing could send to it.
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
        let mut waiting = Box::pin(offload.run(&user, PriorityLevel::Everybody, soon(), request));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(waiting);
        assert!(dropped.await.is_err());
    }

    #[tokio::test]
    async fn a_panic_reaches_whoever_waits() {
        let offload = Offload::default();
        let user = user();
        let run = offload.run(&user, PriorityLevel::Everybody, soon(), async {
            std::panic::resume_unwind(Box::new("oh"))
        });
        let caught: Result<Result<(), _>, _> = std::panic::AssertUnwindSafe(run).catch_unwind().await;
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"oh"));
    }

    #[tokio::test]
    async fn one_user_takes_half_of_everybodys_threads() {
        let offload = Offload::default();
        let user = user();
        let mut kept = Vec::new();
        for _ in 0..THREADS {
            let mut place = offload.threads.holding(&user, PriorityLevel::Everybody, soon());
            if place.take(1).now_or_never().is_none() {
                break;
            }
            kept.push(place);
        }
        assert_eq!(kept.len(), (THREADS - THREADS / 4) / 2);
    }
}
