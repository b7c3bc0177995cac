//! Asks the host for the DaemonSets that pods name and the cache does not have, so that no pod stays undecided.
//!
//! Namespaces take turns, with one question at a time: whoever makes pods that name a DaemonSet which does not exist has a
//! question for each of them, and delays those about nobody else's.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::Client;

use crate::cache::{
    DaemonSet, DaemonSetOwner, NamedDaemonSet, ObjectChange, Pod, Select, api, metadata_alone,
};
use crate::context::ControllerContext;
use crate::error::{CallError, find};
use crate::queue::{ExponentialBackoff, QueueKey, WorkQueue};
use crate::worker::{Requeue, run_workers};

/// The caches that are read.
const READS: Select = Select { pods: true, daemon_sets: true, ..Select::NONE };
/// A DaemonSet that the host has and the cache does not show is asked for again after this. It may have gone before the list
/// with which the cache begins anew.
const SHOWS_WITHIN: Duration = Duration::from_secs(30);

/// Runs until shutdown. The caches of `READS` must be fed. It writes nothing, and needs no lease: a standby decides too.
pub async fn run(context: ControllerContext) {
    tokio::select! {
        () = context.tasks.shutdown().cancelled() => return,
        () = context.caches.wait_until_synced(READS) => {}
    }
    let queue = WorkQueue::new("daemonset_owners", &context.metrics, ExponentialBackoff::WRITES);
    let asked = queue.clone();
    context.caches.pods.subscribe(move |change: &ObjectChange<Pod>| {
        // Also one without a node: a request for it waits for the answer.
        let new = change.new.as_deref().filter(|pod| pod.is_undecided() && !pod.is_terminal());
        new.and_then(NamedDaemonSet::of).into_iter().for_each(|named| asked.add(named));
    });
    let of_workers = context.clone();
    let work = move |named: NamedDaemonSet| {
        let context = context.clone();
        async move { ask(&context, &named).await }.boxed()
    };
    run_workers(&of_workers, queue, 1, work).await;
}

/// Returns a pod that was read from the host with what is known of its DaemonSet, for which the host is asked if need be.
pub async fn decided(context: &ControllerContext, mut pod: Pod) -> Result<Pod, kube::Error> {
    pod.daemon_set_owner = context.caches.owners.owner_of(&pod);
    if let Some(named) = NamedDaemonSet::of(&pod).filter(|_| pod.is_undecided()) {
        pod.daemon_set_owner = answer(&context.client, &named).await?;
    }
    Ok(pod)
}

async fn ask(context: &ControllerContext, named: &NamedDaemonSet) -> Result<Requeue, CallError> {
    let owners = &context.caches.owners;
    if owners.has(named) || !owners.is_awaited(named) {
        return Ok(Requeue::Never);
    }
    let answer = answer(&context.client, named).await.map_err(CallError::of("reading a DaemonSet"))?;
    owners.answered(named, answer);
    Ok(match answer {
        DaemonSetOwner::Alive => Requeue::After(SHOWS_WITHIN),
        _ => Requeue::Never,
    })
}

async fn answer(client: &Client, named: &NamedDaemonSet) -> Result<DaemonSetOwner, kube::Error> {
    if !named.may_exist() {
        return Ok(DaemonSetOwner::Gone);
    }
    let daemon_sets = api::<DaemonSet>(&metadata_alone(client.clone()), &named.namespace);
    let found = find(&daemon_sets, &named.name).await?;
    Ok(named.judge(found.as_ref().map(|wire| &wire.object)))
}

impl QueueKey for NamedDaemonSet {
    fn lane(&self) -> Option<(Arc<str>, Arc<str>)> {
        Some((self.namespace.clone(), Arc::default()))
    }
}

impl fmt::Display for NamedDaemonSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} ({})", self.namespace, self.name, self.uid)
    }
}

#[cfg(test)]
#[path = "ownership_tests.rs"]
mod tests;
