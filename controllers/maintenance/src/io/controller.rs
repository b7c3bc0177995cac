//! The controller around the machine: one planning task, woken by any change, and workers that write.

use std::sync::Arc;
use std::time::Duration;

use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage};
use drydock_runtime::cache::Select;
use drydock_runtime::{Cacheable, CallError, ControllerContext, Node, Requeue, Store, after_failed_write};
use futures::FutureExt;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::error;

use super::events::{log_write, publish, publish_write};
use super::metrics::MaintenanceGauges;
use super::pending::PendingWrites;
use super::write_queues::{WriteJob, WriteQueues};
use super::writer::{ActionWriter, WriteResult};
use crate::actions::{Action, MaintenanceDecision, Task};
use crate::config::Config;
use crate::machine::{MachineMemory, step};
use crate::observed::ObservedChanges;
use crate::world::World;
use crate::world::selects;

/// Least pause after a planning while the drain moves on; a planning that took long is followed by a pause of three times
/// as long.
const MIN_PAUSE: Duration = Duration::from_millis(20);
/// Least pause after a planning while pods just leave one after the other: each of them is a change, and most lead to
/// nothing but numbers in a status.
const QUIET_PAUSE: Duration = Duration::from_millis(200);
/// How long a drain moves on after the last write that moved it: until the caches show what followed.
const MOVES_FOR: Duration = Duration::from_secs(1);
/// Longest pause after a planning.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// A write that a live read did not allow yet is tried again after this.
const NOT_YET_RETRY_AFTER: Duration = Duration::from_secs(1);
/// A write that was decided on an old version is tried again after this, if no cache shows a newer one before.
const STALE_RETRY_AFTER: Duration = Duration::from_secs(10);
/// The caches that are read.
pub const READS: Select = Select { budgets: false, ..Select::ALL };

/// How the controller runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The settings of the machine.
    pub config: Config,
    /// Requests that are written at once.
    pub parallel: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { config: Config::default(), parallel: 32 }
    }
}

/// Runs until shutdown. The caches of `READS` must be fed.
pub async fn run(context: ControllerContext, options: Options) {
    let controller = Arc::new(MaintenanceController::new(&context, options.config));
    context.caches.wait_until_synced(READS).await;
    controller.subscribe();
    let planning = controller.clone().plan_until_stopped();
    let work = {
        let controller = controller.clone();
        move |job: WriteJob| {
            let controller = controller.clone();
            async move { controller.work(&job.task).await }.boxed()
        }
    };
    futures::future::join(planning, controller.queues.run(options.parallel, &context, work)).await;
}

struct MaintenanceController {
    writer: ActionWriter,
    pending: Mutex<PendingWrites>,
    observed: ObservedChanges,
    wake: Notify,
    queues: WriteQueues,
    gauges: MaintenanceGauges,
}

impl MaintenanceController {
    fn new(context: &ControllerContext, config: Config) -> Self {
        let observed = ObservedChanges::default();
        Self {
            gauges: MaintenanceGauges::register(&context.metrics),
            pending: Mutex::default(),
            observed: observed.clone(),
            wake: Notify::new(),
            queues: WriteQueues::new(&context.metrics),
            writer: ActionWriter { context: context.clone(), config, observed },
        }
    }

    fn subscribe(self: &Arc<Self>) {
        let caches = &self.writer.context.caches;
        // This comes before the wake-ups, so that the planning that follows sees what was noted.
        self.observed.subscribe(caches);
        self.wake_on(&caches.maintenances);
        self.wake_on(&caches.nodes);
        self.wake_on(&caches.requests);
        self.wake_on(&caches.pods);
    }

    fn wake_on<T: Cacheable>(self: &Arc<Self>, store: &Store<T>) {
        // The handlers do not keep the controller alive: a late wake-up does nothing.
        let controller = Arc::downgrade(self);
        store.subscribe(move |_| {
            if let Some(controller) = controller.upgrade() {
                controller.wake.notify_one();
            }
        });
    }

    async fn plan_until_stopped(self: Arc<Self>) {
        let stop = self.writer.context.tasks.shutdown().clone();
        let mut memory = MachineMemory::default();
        let mut next: Option<Instant> = Some(Instant::now());
        while !stop.is_cancelled() {
            let timer =
                tokio::time::sleep_until(next.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600)));
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
                () = timer => {}
            }
            let started = Instant::now();
            let controller = self.clone();
            let planned = tokio::task::spawn_blocking(move || controller.plan(memory)).await;
            let Ok((remembered, wake)) = planned else {
                // A bug. The objects hold all that matters, so a fresh memory can go on.
                error!("planning panicked; it starts again from what the objects show");
                memory = MachineMemory::default();
                next = Some(Instant::now() + MAX_PAUSE);
                tokio::time::sleep(MAX_PAUSE).await;
                continue;
            };
            memory = remembered;
            next = wake;
            let took = started.elapsed();
            self.gauges.planned(took);
            let moves_on = self.pending.lock().has_moved_on(MOVES_FOR, Instant::now());
            let least = if moves_on { MIN_PAUSE } else { QUIET_PAUSE };
            tokio::time::sleep((took * 3).clamp(least, MAX_PAUSE)).await;
        }
    }

    /// One planning. Returns the memory and when to plan again at the latest.
    fn plan(&self, mut memory: MachineMemory) -> (MachineMemory, Option<Instant>) {
        let context = &self.writer.context;
        let mut world = World::read(&context.caches, &self.observed.our_requests, is_looked_at);
        // This comes after the read: what the caches show to be lost has been noted by now.
        world.since = self.observed.take();
        world.refused = self.observed.refusals.all();
        let now = context.clock.now();
        let decision = step(&world, &mut memory, now, &self.writer.config);
        self.observed.refusals.retain(|node| decision.actions.contains_key(&Task::Cordon(node.to_owned())));
        self.gauges.update(&world, &memory.blockers);
        decision.events.iter().for_each(|note| publish(context, note));
        let wake = self.hand_over(&world, decision, now);
        (memory, wake)
    }

    fn hand_over(&self, world: &World, decision: MaintenanceDecision, now: Timestamp) -> Option<Instant> {
        let started = Instant::now();
        let seen = |task: &Task| version_of(world, task);
        let mut pending = self.pending.lock();
        for (job, delay) in pending.replace(decision.actions, seen, started) {
            self.queues.add_after(job, delay);
        }
        let due =
            decision.wake.map(|at| started + Duration::try_from(at.duration_since(now)).unwrap_or_default());
        due.into_iter().chain(pending.wake()).min()
    }

    async fn work(&self, task: &Task) -> Result<Requeue, CallError> {
        let Some(action) = self.pending.lock().begin(task, Instant::now()) else { return Ok(Requeue::Never) };
        if !self.writer.context.may_write() {
            self.pending.lock().failed(task);
            return Err(CallError::NoLease);
        }
        match self.writer.write(&action).await {
            Ok(WriteResult::At(version)) => {
                log_write(&action);
                publish_write(&self.writer.context, &action);
                if let Action::Status { events, .. } = &action {
                    events.iter().for_each(|note| publish(&self.writer.context, note));
                }
                if let Action::Cordon { node, .. } = &action {
                    self.observed.refusals.forget(&node.name);
                }
                self.pending.lock().done(&action, version, Instant::now());
                Ok(Requeue::Never)
            }
            Ok(WriteResult::NotYet) => Ok(Requeue::After(NOT_YET_RETRY_AFTER)),
            Err(error) => self.failed(&action, error),
        }
    }

    fn failed(&self, action: &Action, error: kube::Error) -> Result<Requeue, CallError> {
        if let Action::Cordon { node, .. } = action
            && self.observed.refusals.note(&node.name, &error)
        {
            self.wake.notify_one();
        }
        // The next planning decides again from the caches; an action that it does not change is tried again.
        let next = after_failed_write("", error, STALE_RETRY_AFTER);
        if next.is_err() {
            self.pending.lock().failed(&action.task());
        }
        next
    }
}

/// Whether the pods of a node matter: a maintenance selects it whose work is not done.
fn is_looked_at(node: &Node, maintenances: &[Arc<NodeMaintenance>]) -> bool {
    let works = |m: &NodeMaintenance| m.spec.stage != NodeMaintenanceStage::Complete || m.has_finalizer();
    maintenances.iter().any(|m| works(m) && selects(m, node))
}

/// The version of a task's object in the cache, 0 if it is not there.
fn version_of(world: &World, task: &Task) -> u64 {
    let version = match task {
        Task::Cordon(name) | Task::Conditions(name) => {
            world.nodes.get(name).map(|n| n.resource_version.as_str())
        }
        Task::Request(namespace, uid) => {
            let request = world.requests.get(&(namespace.clone(), uid.clone()));
            request.map(|r| r.metadata.resource_version.as_str())
        }
        Task::Status(name) | Task::Finalizer(name) => {
            let maintenance = world.maintenances.iter().find(|m| m.metadata.name == *name);
            maintenance.map(|m| m.metadata.resource_version.as_str())
        }
    };
    version.and_then(|v| v.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use drydock_runtime::testing::{context, failure};

    use super::*;

    fn cordon() -> Action {
        let node =
            Node { name: "n".into(), uid: "u".into(), resource_version: "1".into(), ..Node::default() };
        Action::Cordon { node: Arc::new(node), unschedulable: Some(true), annotation: None }
    }

    /// A controller with this action to carry out, on a host that answers like this.
    fn controller(action: Action, code: u16, reason: &'static str) -> MaintenanceController {
        let context = context(move |_, _, _| failure(code, reason));
        let controller = MaintenanceController::new(&context, Config::default());
        let actions = BTreeMap::from([(action.task(), action)]);
        controller.pending.lock().replace(actions, |_| 0, Instant::now());
        controller
    }

    /// It was written again after 5, 10 and 20 ms, on the same version, until a planning had seen the newer one.
    #[tokio::test(start_paused = true)]
    async fn a_write_on_an_old_version_waits_for_the_next_planning() {
        let controller = controller(cordon(), 409, "Conflict");
        let outcome = controller.work(&cordon().task()).await.unwrap();
        assert_eq!(outcome, Requeue::After(Duration::from_secs(10)));
    }

    /// The planning did not know of the refusal, and kept every pod of the maintenance waiting.
    #[tokio::test(start_paused = true)]
    async fn the_words_of_a_refused_cordon_reach_the_next_planning_which_comes_at_once() {
        let refusing = controller(cordon(), 403, "denied by a webhook");
        assert!(refusing.work(&cordon().task()).await.is_err());
        refusing.wake.notified().await;
        assert_eq!(refusing.observed.refusals.of("n").as_deref(), Some("denied by a webhook"));
        refusing.observed.refusals.retain(|_| false);
        assert!(refusing.observed.refusals.all().is_empty(), "nobody wants to cordon it any more");
        for (code, reason) in [(409, "Conflict"), (404, "NotFound"), (429, "TooManyRequests")] {
            let busy = controller(cordon(), code, reason);
            let _ = busy.work(&cordon().task()).await;
            assert!(busy.observed.refusals.all().is_empty(), "{code}");
        }
    }
}
