//! The tasks of a program, each of which runs until shutdown.
//!
//! A task that ends before, by a panic say, leaves the program without a part of what it does: a cache that nothing feeds any
//! more is complete and wrong. Only a restart brings the task back, so the program ends, as it would by a panic of its own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of a program. Clones share them.
#[derive(Clone)]
pub struct ProgramTasks {
    tracker: TaskTracker,
    shutdown: CancellationToken,
    failure: Arc<watch::Sender<Option<TaskFailure>>>,
}

/// Why the program has to end: a task has, before shutdown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TaskFailure {
    /// It panicked, with a message on stderr.
    #[error("the task {0:?} panicked")]
    Panicked(String),
    /// It returned, which it should not do before shutdown.
    #[error("the task {0:?} ended by itself")]
    Returned(String),
}

impl ProgramTasks {
    /// No task runs yet. `shutdown` is cancelled when they are to end.
    pub fn new(shutdown: CancellationToken) -> Self {
        Self { tracker: TaskTracker::new(), shutdown, failure: Arc::new(watch::Sender::new(None)) }
    }

    /// Is cancelled when the tasks are to end.
    pub fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    /// Starts a task, which has to run until shutdown, or until it is aborted.
    pub fn spawn(
        &self,
        name: impl Into<String>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        let (name, shutdown, failure) = (name.into(), self.shutdown.clone(), self.failure.clone());
        let task = self.tracker.spawn(async move {
            let ended = AssertUnwindSafe(task).catch_unwind().await;
            if !shutdown.is_cancelled() {
                let why = if ended.is_ok() { TaskFailure::Returned } else { TaskFailure::Panicked };
                failure.send_replace(Some(why(name)));
            }
        });
        task.abort_handle()
    }

    /// Starts a task that has no end, and drops it at shutdown.
    pub fn spawn_endless(
        &self,
        name: impl Into<String>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        let shutdown = self.shutdown.clone();
        self.spawn(name, async move {
            shutdown.run_until_cancelled(task).await;
        })
    }

    /// Runs a program to its end, or until one of its tasks has ended before shutdown.
    ///
    /// # Errors
    /// Those of the program, and one that names the task.
    pub async fn run(&self, program: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
        tokio::select! {
            ended = program => ended,
            failure = self.failed() => Err(failure.into()),
        }
    }

    /// Waits until a task has ended before shutdown.
    async fn failed(&self) -> TaskFailure {
        let mut failure = self.failure.subscribe();
        loop {
            let seen = failure.borrow_and_update().clone();
            if let Some(failure) = seen {
                return failure;
            }
            // The sender lives as long as this does.
            let _ = failure.changed().await;
        }
    }

    /// Waits until no task runs. One that is started after that is not waited for.
    pub async fn finished(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    async fn broken() {
        panic!("broken");
    }

    /// A cache whose reflector had panicked stayed as it was, and the program went on with it.
    #[tokio::test]
    async fn a_task_that_panics_ends_the_program_with_an_error_that_names_it() {
        let tasks = ProgramTasks::new(CancellationToken::new());
        tasks.spawn("one that goes on", pending());
        tasks.spawn_endless("reflector of pods", broken());
        let error = tasks.run(pending()).await.unwrap_err();
        assert_eq!(error.to_string(), "the task \"reflector of pods\" panicked");
        // A later caller gets the same.
        assert_eq!(tasks.failed().await, TaskFailure::Panicked("reflector of pods".into()));
    }

    #[tokio::test]
    async fn a_task_without_an_end_ends_at_shutdown_and_one_that_is_aborted_has_not_failed() {
        let tasks = ProgramTasks::new(CancellationToken::new());
        tasks.spawn("aborted", pending()).abort();
        tasks.finished().await;
        assert_eq!(tasks.failed().now_or_never(), None);
        tasks.spawn_endless("endless", pending());
        tasks.shutdown().cancel();
        tasks.finished().await;
        assert_eq!(tasks.failed().now_or_never(), None);
    }

    #[tokio::test]
    async fn a_task_that_returns_before_shutdown_is_named_and_one_that_ends_then_is_not() {
        let tasks = ProgramTasks::new(CancellationToken::new());
        let stop = tasks.shutdown().clone();
        tasks.spawn("in order", async move { stop.cancelled().await });
        assert_eq!(tasks.failed().now_or_never(), None);
        tasks.spawn("too early", async {});
        assert_eq!(tasks.failed().await, TaskFailure::Returned("too early".into()));

        let tasks = ProgramTasks::new(CancellationToken::new());
        let stop = tasks.shutdown().clone();
        tasks.spawn("in order", async move { stop.cancelled().await });
        tasks.shutdown().cancel();
        tasks.finished().await;
        assert_eq!(tasks.failed().now_or_never(), None);
    }
}
