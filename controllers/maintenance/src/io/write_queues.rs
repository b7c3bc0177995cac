//! Queues of the writes, each with workers of its own, so that tens of thousands of requests delay no cordon
//! and no status.
//!
//! ```text
//!   cordons ──▶ workers      requests wait for these
//!   statuses ─▶ workers      statuses and finalizers of maintenances: what is targeted stands there before the requests
//!   nodes ────▶ workers      conditions of nodes, which may have to be confirmed
//!   requests ─▶ workers      maintenances take turns, and within each its nodes
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use drydock_runtime::metrics::Metrics;
use drydock_runtime::queue::{ExponentialBackoff, QueueKey, WorkQueue};
use drydock_runtime::{CallError, ControllerContext, Requeue, run_workers};
use futures::future::{BoxFuture, join_all};

use crate::actions::{Action, RequestLane, Task};

/// Workers for cordons, and for statuses.
const PARALLEL_WORKERS: usize = 16;
/// Workers for conditions: no pod waits for these, only the end of a maintenance does, and at the start of a drain they take
/// the host's time from the evictions.
const CONDITION_WORKERS: usize = 4;

/// The queues.
pub(crate) struct WriteQueues {
    cordons: WorkQueue<WriteJob>,
    statuses: WorkQueue<WriteJob>,
    conditions: WorkQueue<WriteJob>,
    requests: WorkQueue<WriteJob>,
}

/// A task that waits, in a lane. Jobs of one task are equal in any lane.
#[derive(Clone, Debug)]
pub(crate) struct WriteJob {
    pub(crate) task: Task,
    lane: Option<(Arc<str>, Arc<str>)>,
}

impl WriteQueues {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let queue = |name: &str| WorkQueue::new(name, metrics, ExponentialBackoff::WRITES);
        Self {
            cordons: queue("nodemaintenance_cordons"),
            statuses: queue("nodemaintenances"),
            conditions: queue("nodemaintenance_conditions"),
            requests: queue("nodemaintenance_requests"),
        }
    }

    /// Adds a task when `delay` is over.
    pub(crate) fn add_after(&self, job: WriteJob, delay: Duration) {
        self.of(&job.task).add_after(job, delay);
    }

    /// Works until shutdown, on at most `requests` of the requests at once.
    pub(crate) async fn run<F>(&self, requests: usize, context: &ControllerContext, work: F)
    where
        F: Fn(WriteJob) -> BoxFuture<'static, Result<Requeue, CallError>> + Clone + Send + Sync + 'static,
    {
        let workers = |queue: &WorkQueue<WriteJob>, parallel| {
            run_workers(context, queue.clone(), parallel, work.clone())
        };
        join_all([
            workers(&self.cordons, PARALLEL_WORKERS),
            workers(&self.statuses, PARALLEL_WORKERS),
            workers(&self.conditions, CONDITION_WORKERS),
            workers(&self.requests, requests),
        ])
        .await;
    }

    fn of(&self, task: &Task) -> &WorkQueue<WriteJob> {
        match task {
            Task::Cordon(_) => &self.cordons,
            Task::Status(_) | Task::Finalizer(_) => &self.statuses,
            Task::Conditions(_) => &self.conditions,
            Task::Request(..) => &self.requests,
        }
    }
}

impl WriteJob {
    /// The task of an action.
    pub(crate) fn of(action: &Action) -> Self {
        let lane = match action {
            Action::Request { lane: RequestLane { maintenance, within }, .. } => {
                Some((maintenance.as_str().into(), within.as_str().into()))
            }
            _ => None,
        };
        Self { task: action.task(), lane }
    }
}

/// As the log names it.
impl fmt::Display for WriteJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.task.fmt(f)
    }
}

impl QueueKey for WriteJob {
    fn lane(&self) -> Option<(Arc<str>, Arc<str>)> {
        self.lane.clone()
    }
}

impl PartialEq for WriteJob {
    fn eq(&self, other: &Self) -> bool {
        self.task == other.task
    }
}

impl Eq for WriteJob {}

impl Hash for WriteJob {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.task.hash(state);
    }
}

#[cfg(test)]
#[path = "write_queues_tests.rs"]
mod tests;
