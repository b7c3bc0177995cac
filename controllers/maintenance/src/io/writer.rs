//! Carries actions out. Writes to the host carry UID and resourceVersion; requests are applied as our own entry.

use std::collections::BTreeMap;

use drydock_api::eviction_request::maintenances::{MAINTENANCES_ANNOTATION, NODE_ANNOTATION};
use drydock_api::eviction_request::{EvictionRequest, LocalPodReference, Requester, pod_labels};
use drydock_api::node_maintenance::{FINALIZER, NodeMaintenance, NodeMaintenanceStatus, PodType};
use drydock_api::time::format_seconds;
use drydock_runtime::cache::node::CORDONED_BY;
use drydock_runtime::cache::{api, api_all, bounded};
use drydock_runtime::{Cacheable, ControllerContext, Node, Pod, ownership, patch};
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use crate::REQUESTER;
use crate::actions::{Action, NodeConditionChange, RequestChange};
use crate::config::Config;
use crate::observed::ObservedChanges;
use crate::observed::asked_again::ASKED_AGAIN_ANNOTATION;

/// Nodes that are read at once to confirm that they are empty.
const CONFIRM_AT_ONCE: usize = 8;

/// Most pods of a page of such a read.
const CONFIRM_PAGE: u32 = 100;

/// How a write ended, when nothing failed.
pub(crate) enum WriteResult {
    /// The write succeeded; the object has this version.
    At(u64),
    /// Nothing was written, because a live read shows pods that are still left; try again.
    NotYet,
}

#[derive(Clone)]
pub(crate) struct ActionWriter {
    pub(crate) context: ControllerContext,
    pub(crate) config: Config,
    /// Records the nodes that a live read has shown to be empty.
    pub(crate) observed: ObservedChanges,
}

impl ActionWriter {
    pub(crate) async fn write(&self, action: &Action) -> Result<WriteResult, kube::Error> {
        match action {
            Action::Cordon { node, unschedulable, annotation } => {
                self.cordon(node, *unschedulable, *annotation).await
            }
            Action::Conditions { node, uid, set, remove, confirm, .. } => {
                let confirm = confirm.map(|last| (node.clone(), last)).into_iter().collect();
                if !self.are_empty(&confirm).await? {
                    return Ok(WriteResult::NotYet);
                }
                self.conditions(node, uid, set, remove).await
            }
            Action::Request { namespace, pod, change, .. } => self.request(namespace, pod, change).await,
            Action::Status { maintenance, status, confirm, .. } => {
                self.status(maintenance, status, confirm).await
            }
            Action::Finalizer { maintenance, .. } => self.finalizer(maintenance).await,
        }
    }

    async fn request(
        &self,
        namespace: &str,
        uid: &str,
        change: &RequestChange,
    ) -> Result<WriteResult, kube::Error> {
        match change {
            RequestChange::Ask { pod, request, maintenances, asked_again } => {
                let mut part = part(namespace, uid, pod, request.as_deref());
                let target = self.context.caches.pods.find(namespace, pod).filter(|pod| pod.uid == uid);
                // A request has the labels from the beginning: nothing is left to synchronize for a pod whose labels
                // do not change.
                let labels = target.as_ref().map(|pod| pod_labels::copied(&pod.labels).into_owned());
                part.metadata.labels = labels.unwrap_or_default().into();
                let node = target.map(|pod| (NODE_ANNOTATION.to_owned(), pod.node_name.clone()));
                part.spec.requesters = vec![Requester { name: REQUESTER.to_owned() }];
                let annotation = (MAINTENANCES_ANNOTATION.to_owned(), maintenances.to_string());
                let asked_again = asked_again.map(|a| (ASKED_AGAIN_ANNOTATION.to_owned(), a.value()));
                part.metadata.annotations = [annotation]
                    .into_iter()
                    .chain(node)
                    .chain(asked_again)
                    .collect::<BTreeMap<_, _>>()
                    .into();
                Ok(at(&self.apply_request(part).await?))
            }
            RequestChange::Withdraw { pod, request } => self.withdraw(namespace, uid, pod, request).await,
            RequestChange::Delete { request, resource_version } => {
                self.delete_request(namespace, uid, request, Some(resource_version)).await
            }
            RequestChange::Replace { request } => self.delete_request(namespace, uid, request, None).await,
        }
    }

    async fn cordon(
        &self,
        node: &Node,
        unschedulable: Option<bool>,
        annotation: Option<&str>,
    ) -> Result<WriteResult, kube::Error> {
        let mut patch = json!({
            "metadata": {
                "uid": node.uid, "resourceVersion": node.resource_version, "annotations": { CORDONED_BY: annotation },
            },
        });
        if let Some(unschedulable) = unschedulable {
            patch["spec"] = json!({ "unschedulable": unschedulable });
        }
        let written =
            api::<Node>(&self.context.client, "").patch(&node.name, &params(), &Patch::Merge(patch)).await?;
        Ok(at(&written.object))
    }

    async fn conditions(
        &self,
        node: &str,
        uid: &str,
        set: &[NodeConditionChange],
        remove: &[&str],
    ) -> Result<WriteResult, kube::Error> {
        let now = self.context.clock.now();
        let set = set.iter().map(|change| condition(change, now));
        let gone = remove.iter().map(|type_| json!({ "type": type_, "$patch": "delete" }));
        let conditions: Vec<Value> = set.chain(gone).collect();
        let patch = json!({ "metadata": { "uid": uid }, "status": { "conditions": conditions } });
        let nodes = api::<Node>(&self.context.client, "");
        let written = nodes.patch_status(node, &params(), &Patch::Strategic(patch)).await?;
        Ok(at(&written.object))
    }

    /// Applies our whole part of a request.
    async fn apply_request(&self, part: EvictionRequest) -> Result<EvictionRequest, kube::Error> {
        let requests = api::<EvictionRequest>(&self.context.client, &part.metadata.namespace);
        let (name, params) = (part.metadata.name.clone(), PatchParams::apply(REQUESTER).force());
        Ok(requests.patch(&name, &params, &Patch::Apply(part)).await?.object)
    }

    /// Withdraws our entry by no longer applying it. If somebody else has set the entry too, it stays after that.
    /// It would then keep the maintenance from ending, so it is removed from the list.
    async fn withdraw(
        &self,
        namespace: &str,
        uid: &str,
        pod: &str,
        request: &str,
    ) -> Result<WriteResult, kube::Error> {
        let mut part = part(namespace, uid, pod, Some(request));
        // What an apply leaves out is removed: the labels stay for those who read the request.
        let present = self.context.caches.requests.find(namespace, uid);
        part.metadata.labels =
            present.map(|r| pod_labels::applied_by(&r, REQUESTER)).unwrap_or_default().into();
        let left = self.apply_request(part).await?;
        if !left.has_requester(REQUESTER) {
            return Ok(at(&left));
        }
        let others: Vec<&Requester> = left.spec.requesters.iter().filter(|r| r.name != REQUESTER).collect();
        let patch = json!({
            "metadata": { "uid": left.metadata.uid, "resourceVersion": left.metadata.resource_version },
            "spec": { "requesters": others },
        });
        let requests = api::<EvictionRequest>(&self.context.client, namespace);
        Ok(at(&requests.patch(uid, &params(), &Patch::Merge(patch)).await?.object))
    }

    async fn delete_request(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
        version: Option<&String>,
    ) -> Result<WriteResult, kube::Error> {
        let precondition = Preconditions { uid: Some(uid.to_owned()), resource_version: version.cloned() };
        let params = DeleteParams::default().preconditions(precondition);
        api::<EvictionRequest>(&self.context.client, namespace).delete(name, &params).await?;
        Ok(WriteResult::At(0))
    }

    async fn status(
        &self,
        maintenance: &NodeMaintenance,
        status: &NodeMaintenanceStatus,
        confirm: &BTreeMap<String, PodType>,
    ) -> Result<WriteResult, kube::Error> {
        if !self.are_empty(confirm).await? {
            return Ok(WriteResult::NotYet);
        }
        let patch = patch::status(&maintenance.metadata, &maintenance.status, status, &[]);
        let maintenances = api::<NodeMaintenance>(&self.context.client, "");
        let name = &maintenance.metadata.name;
        let written = maintenances.patch_status(name, &params(), &Patch::Merge(patch)).await?;
        Ok(at(&written.object))
    }

    /// Whether live reads of the host show no counted pod on these nodes, each up to a type. A cache may lag,
    /// and people power nodes off on the answer.
    async fn are_empty(&self, nodes: &BTreeMap<String, PodType>) -> Result<bool, kube::Error> {
        let read = |(node, last): (&String, &PodType)| self.clone().confirm_empty(node.clone(), *last);
        let reads: Vec<_> = nodes.iter().map(read).collect();
        let mut reads = stream::iter(reads).buffer_unordered(CONFIRM_AT_ONCE);
        while let Some(is_empty) = reads.try_next().await? {
            if !is_empty {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn confirm_empty(self, node: String, last: PodType) -> Result<bool, kube::Error> {
        // Pods that have run to their end count nowhere, and there may be thousands.
        let fields = format!("spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed");
        let mut params = ListParams::default().fields(&fields).limit(CONFIRM_PAGE);
        let pods = api_all::<Pod>(&bounded(self.context.client.clone()));
        let is_left = |pod: &Pod| self.config.counts(pod) && pod.pod_type() <= last;
        loop {
            let page = pods.list(&params).await?;
            for pod in page.items.into_iter().map(|wire| wire.object).filter(|pod| self.config.counts(pod)) {
                if is_left(&ownership::decided(&self.context, pod).await?) {
                    return Ok(false);
                }
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => break,
            }
        }
        self.observed.confirm(&node, last);
        Ok(true)
    }

    async fn finalizer(&self, maintenance: &NodeMaintenance) -> Result<WriteResult, kube::Error> {
        let meta = &maintenance.metadata;
        let others: Vec<&String> = meta.finalizers.iter().filter(|f| *f != FINALIZER).collect();
        let patch = json!({
            "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": others },
        });
        let maintenances = api::<NodeMaintenance>(&self.context.client, "");
        let written = maintenances.patch(&meta.name, &params(), &Patch::Merge(patch)).await?;
        Ok(at(&written.object))
    }
}

/// Our part of a request, without our requester and annotations. The UID keeps an apply from creating a
/// request again that was deleted meanwhile.
fn part(namespace: &str, uid: &str, pod: &str, request: Option<&str>) -> EvictionRequest {
    let mut part = EvictionRequest::named(namespace, uid);
    part.metadata.uid = request.unwrap_or_default().to_owned();
    part.spec.target.pod = Some(LocalPodReference { name: pod.to_owned(), uid: uid.to_owned() });
    part
}

fn condition(condition: &NodeConditionChange, now: Timestamp) -> Value {
    let now = format_seconds(now);
    let mut value = json!({
        "type": condition.type_,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastHeartbeatTime": now,
    });
    if condition.status_changes {
        value["lastTransitionTime"] = now.into();
    }
    value
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(REQUESTER.to_owned()), ..Default::default() }
}

fn at<T: Cacheable>(object: &T) -> WriteResult {
    WriteResult::At(object.resource_version().parse().unwrap_or_default())
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
