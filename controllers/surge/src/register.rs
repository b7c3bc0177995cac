//! Registers the interceptor on the pods of opted-in Deployments, by an annotation, before there is a request: a
//! request takes its interceptors once. When the opt-in has been gone for a while, the annotation goes: whoever takes the
//! opt-in away and gives it again, in turn, would otherwise cause a write of every pod each time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drydock_api::eviction_request::interceptor_annotations::PREFIX;
use drydock_api::eviction_request::interceptors::SURGE;
use drydock_runtime::cache::api;
use drydock_runtime::queue::WorkQueue;
use drydock_runtime::{
    Cacheable, CallError, ObjectChange, ObjectKey, Pod, Requeue, after_failed_write, run_workers,
};
use futures::FutureExt;
use kube::api::{Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use crate::controller::{FIELD_MANAGER, STALE_RETRY_AFTER, SurgeController};
use crate::deployment::Deployment;
use crate::workloads::DeploymentOf;

/// Its turn is before those of the pod's own interceptors: these act on a pod that is about to go, and this one may take
/// the longest. An owner who wants another order sets the annotation in the pod template.
const VALUE: &str = "20000/interceptor";
/// The annotation of a pod stays for so long after the opt-in of its Deployment went.
const REMOVE_AFTER: Duration = Duration::from_secs(30);
/// Pods written at once.
const PARALLEL_WORKERS: usize = 8;

/// When the opt-in of a Deployment went, of those that are within [`REMOVE_AFTER`]. Clones share it.
#[derive(Clone, Default)]
struct OptOuts(Arc<Mutex<BTreeMap<ObjectKey, Instant>>>);

impl OptOuts {
    /// Notes that a Deployment has opted in, or no longer.
    fn note(&self, deployment: ObjectKey, is_opted_in: bool, now: Instant) {
        let mut since = self.0.lock();
        since.retain(|_, gone| *gone + REMOVE_AFTER > now);
        if is_opted_in {
            since.remove(&deployment);
        } else {
            since.insert(deployment, now);
        }
    }

    /// For how long the annotations of its pods stay.
    fn wait(&self, deployment: &ObjectKey, now: Instant) -> Option<Duration> {
        let gone = *self.0.lock().get(deployment)?;
        Some((gone + REMOVE_AFTER).saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }
}

/// What a pod needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegistrationChange {
    Add,
    Remove,
    Leave,
}

/// Works until shutdown. The caches are complete.
pub async fn run(controller: SurgeController, queue: WorkQueue<ObjectKey>) {
    let opt_outs = OptOuts::default();
    subscribe(&controller, &queue, &opt_outs);
    let context = controller.context.clone();
    let work = move |key| {
        let (controller, opt_outs) = (controller.clone(), opt_outs.clone());
        async move { reconcile(&controller, &opt_outs, key).await }.boxed()
    };
    run_workers(&context, queue, PARALLEL_WORKERS, work).await;
}

fn subscribe(controller: &SurgeController, queue: &WorkQueue<ObjectKey>, opt_outs: &OptOuts) {
    let (changed, workloads) = (queue.clone(), controller.workloads.clone());
    controller.context.caches.pods.subscribe(move |change: &ObjectChange<Pod>| {
        let Some(pod) = &change.new else { return };
        let needs = match workloads.deployment_of(pod) {
            DeploymentOf::Known(deployment) => needed(pod, &deployment, false) != RegistrationChange::Leave,
            DeploymentOf::NotCached => true,
            DeploymentOf::None => false,
        };
        if needs {
            changed.add(pod.key());
        }
    });
    let (opted, controller, opt_outs) = (queue.clone(), controller.clone(), opt_outs.clone());
    controller.workloads.deployments.clone().subscribe(move |change: &ObjectChange<Deployment>| {
        let Some((old, new)) = change.old.as_ref().zip(change.new.as_ref()) else { return };
        if old.is_opted_in != new.is_opted_in {
            opt_outs.note(new.key(), new.is_opted_in, Instant::now());
            controller.pods_of(new).into_iter().for_each(|pod| opted.add(pod));
        }
    });
}

/// What is to be done to a pod of a Deployment. One with a request is left as it is: it comes too late to be in this one, and
/// the request goes on with those that it has.
fn needed(pod: &Pod, deployment: &Deployment, has_request: bool) -> RegistrationChange {
    if has_request || !pod.is_staying() {
        return RegistrationChange::Leave;
    }
    match (pod.annotations.get(&annotation()), deployment.is_opted_in) {
        (None, true) => RegistrationChange::Add,
        (Some(value), false) if value == VALUE => RegistrationChange::Remove,
        _ => RegistrationChange::Leave,
    }
}

fn annotation() -> String {
    format!("{PREFIX}priority_{SURGE}")
}

async fn reconcile(
    controller: &SurgeController,
    opt_outs: &OptOuts,
    key: ObjectKey,
) -> Result<Requeue, CallError> {
    let caches = &controller.context.caches;
    let Some(pod) = caches.pods.get(&key).filter(|pod| pod.is_staying()) else { return Ok(Requeue::Never) };
    let deployment = match controller.workloads.deployment_of(&pod) {
        DeploymentOf::Known(deployment) => deployment,
        DeploymentOf::NotCached => return Ok(Requeue::WithBackoff),
        DeploymentOf::None => return Ok(Requeue::Never),
    };
    let has_request = caches.requests.find(&pod.namespace, &pod.uid).is_some();
    let value = match needed(&pod, &deployment, has_request) {
        RegistrationChange::Add => Some(VALUE),
        RegistrationChange::Remove => match opt_outs.wait(&deployment.key(), Instant::now()) {
            Some(wait) => return Ok(Requeue::After(wait)),
            None => None,
        },
        RegistrationChange::Leave => return Ok(Requeue::Never),
    };
    controller.context.check_lease()?;
    let patch = json!({"metadata": {
        "uid": pod.uid, "resourceVersion": pod.resource_version, "annotations": { annotation(): value },
    }});
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let pods = api::<Pod>(&controller.context.client, &pod.namespace);
    match pods.patch(&pod.name, &params, &Patch::Merge(patch)).await {
        Ok(_) => Ok(Requeue::Never),
        Err(error) => after_failed_write("registering on the pod", error, STALE_RETRY_AFTER),
    }
}

impl SurgeController {
    fn pods_of(&self, deployment: &Deployment) -> Vec<ObjectKey> {
        let key = deployment.key();
        let is_of =
            |pod: &Pod| matches!(self.workloads.deployment_of(pod), DeploymentOf::Known(d) if d.key() == key);
        let pods = self.context.caches.pods.in_namespace(&deployment.namespace);
        pods.iter().filter(|pod| is_of(pod)).map(|pod| pod.key()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(value: Option<&str>) -> Pod {
        let annotations = BTreeMap::from_iter(value.map(|value| (annotation(), value.to_owned())));
        Pod { annotations: annotations.into(), ..Pod::default() }
    }

    #[test]
    fn a_pod_is_registered_while_its_deployment_is_opted_in() {
        let of = |is_opted_in| Deployment { is_opted_in, ..Deployment::default() };
        assert_eq!(needed(&pod(None), &of(true), false), RegistrationChange::Add);
        assert_eq!(needed(&pod(Some(VALUE)), &of(true), false), RegistrationChange::Leave);
        assert_eq!(needed(&pod(Some(VALUE)), &of(false), false), RegistrationChange::Remove);
        assert_eq!(needed(&pod(None), &of(false), false), RegistrationChange::Leave);
    }

    /// A tenant flipped the opt-in twelve times in half a minute: each time, every pod was written.
    #[test]
    fn an_opt_in_that_comes_and_goes_takes_no_annotation_away() {
        let (opt_outs, key) = (OptOuts::default(), Deployment::default().key());
        let mut now = Instant::now();
        for _ in 0..12 {
            opt_outs.note(key.clone(), false, now);
            now += Duration::from_secs(2);
            assert!(opt_outs.wait(&key, now).is_some());
            opt_outs.note(key.clone(), true, now);
            now += Duration::from_secs(1);
        }
        opt_outs.note(key.clone(), false, now);
        assert_eq!(
            opt_outs.wait(&key, now + REMOVE_AFTER - Duration::from_secs(1)),
            Some(Duration::from_secs(1))
        );
        assert_eq!(opt_outs.wait(&key, now + REMOVE_AFTER), None);
        opt_outs.note(key.clone(), true, now + REMOVE_AFTER);
        assert!(opt_outs.0.lock().is_empty());
    }

    #[test]
    fn a_priority_that_the_owner_chose_stays() {
        let of = |is_opted_in| Deployment { is_opted_in, ..Deployment::default() };
        assert_eq!(needed(&pod(Some("5/interceptor")), &of(true), false), RegistrationChange::Leave);
        assert_eq!(needed(&pod(Some("5/interceptor")), &of(false), false), RegistrationChange::Leave);
    }

    #[test]
    fn a_pod_with_a_request_or_one_that_leaves_is_left() {
        let opted_in = Deployment { is_opted_in: true, ..Deployment::default() };
        assert_eq!(needed(&pod(None), &opted_in, true), RegistrationChange::Leave);
        let leaving = Pod { deletion_timestamp: Some(jiff::Timestamp::UNIX_EPOCH), ..pod(None) };
        assert_eq!(needed(&leaving, &opted_in, false), RegistrationChange::Leave);
    }
}
