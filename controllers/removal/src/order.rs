//! The removal in its order, which stands in [`remove`].

use std::time::Duration;

use drydock_api::{GROUP, VERSION};
use drydock_runtime::surge_record::RECORD;
use drydock_runtime::{ObjectKey, find};
use kube::api::DynamicObject;
use kube::{Client, Error};

use crate::deletion::{DeletedObject, Deletion, DeletionError, wait_until_gone};
use crate::listing::ObjectScope;
use crate::plan::{RemovalPlan, node, surge};
use crate::report::{RemovalLine, RemovalReport, said};
use crate::undo::Undoing;

/// The namespace of deploy/.
const NAMESPACE: &str = "drydock-system";
/// The label of what deploy/ makes outside of that namespace.
const LABEL: &str = "app.kubernetes.io/part-of=drydock";
/// How long the controller manager may take to release the nodes of all maintenances.
const MAINTENANCES_END_WITHIN: Duration = Duration::from_secs(60);
/// How long what deploy/ has made may take to go.
const OBJECTS_GO_WITHIN: Duration = Duration::from_secs(300);

/// Whether the removal changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalMode {
    /// It changes what is to be changed.
    Change,
    /// It says what it would change.
    DryRun,
}

/// Why Drydock is not removed, or not wholly.
#[derive(Debug, thiserror::Error)]
pub enum RemovalError {
    /// A call failed. Before the controllers are gone that ends the removal, as they would undo what is taken back.
    #[error("{what}: {}", said(cause))]
    Step {
        /// What was done.
        what: String,
        /// The client's error. It is no source: its text is not made safe, and is told already.
        cause: Box<Error>,
    },
    /// An object was not deleted.
    #[error("{0}")]
    NotDeleted(String),
    /// An object is being deleted and does not go.
    #[error("{0} is still there: find out what keeps it, and run this again")]
    StillThere(String),
    /// Some objects are as they were; a line says of each why.
    #[error("not all was done, see the lines above (problems: {0}): run this again when they are solved")]
    Unfinished(usize),
}

impl From<DeletionError> for RemovalError {
    fn from(error: DeletionError) -> Self {
        Self::NotDeleted(error.to_string())
    }
}

/// Removes Drydock from a cluster. It may be called again, also after parts were removed by hand or when it was interrupted.
///
/// Maintenances are ended first, so that the controller manager releases their nodes. Then what deploy/ has made goes, the
/// APIService before the rest: while it is there and nobody serves it, no namespace can be deleted. Nothing is taken back before
/// the controllers are gone.
///
/// # Errors
/// What could not be done. Where that is the fault of one object of others, the rest is done all the same.
pub async fn remove(
    client: &Client,
    mode: RemovalMode,
    to: &mut dyn FnMut(RemovalLine),
) -> Result<(), RemovalError> {
    let mut removal =
        RunningRemoval { client, is_dry_run: mode == RemovalMode::DryRun, report: RemovalReport::new(to) };
    removal.end_maintenances().await?;
    removal.delete_registration().await?;
    removal.delete_controllers().await?;
    removal.delete_the_rest().await;
    removal.take_back_surges().await;
    removal.release_nodes().await;
    match removal.report.problems() {
        0 => Ok(()),
        problems => Err(RemovalError::Unfinished(problems)),
    }
}

struct RunningRemoval<'a, 'r> {
    client: &'a Client,
    is_dry_run: bool,
    report: RemovalReport<'r>,
}

impl RunningRemoval<'_, '_> {
    async fn end_maintenances(&mut self) -> Result<(), RemovalError> {
        if !self.is_registered().await? {
            return Ok(());
        }
        let deletion = all(ObjectScope::cluster(GROUP, VERSION, "NodeMaintenance", "nodemaintenances"));
        let ended = async {
            let keys = match deletion.scope.keys(self.client, |_| true).await {
                Ok(keys) => keys,
                Err(error) => {
                    self.report.progress(&listing(&deletion.scope)(error).to_string());
                    return false;
                }
            };
            self.report.progress("ending all NodeMaintenances");
            let (mut deleted, mut are_asked) = (Vec::new(), true);
            for key in keys {
                match deletion.delete(self.client, &key, self.is_dry_run, &mut self.report).await {
                    Ok(object) => deleted.extend(object),
                    Err(error) => {
                        self.report.progress(&error.to_string());
                        are_asked = false;
                    }
                }
            }
            are_asked && wait_until_gone(&deleted, MAINTENANCES_END_WITHIN).await.is_none()
        };
        // The API server of Drydock answers: if it does not, the rest goes on without it.
        if !tokio::time::timeout(MAINTENANCES_END_WITHIN, ended).await.unwrap_or(false) {
            self.report.progress("some NodeMaintenances have not ended: their nodes are cleaned up below");
        }
        Ok(())
    }

    async fn delete_registration(&mut self) -> Result<(), RemovalError> {
        self.report.progress("removing what deploy/ has made");
        self.delete_all(&Deletion { is_meant: is_ours, ..all(api_services()) }, vec![registration()]).await
    }

    /// The controllers go with their Deployments, and these after their pods.
    async fn delete_controllers(&mut self) -> Result<(), RemovalError> {
        let scope = ObjectScope::cluster("apps", "v1", "Deployment", "deployments").in_namespace(NAMESPACE);
        let keys = scope.keys(self.client, |_| true).await.map_err(listing(&scope))?;
        self.delete_all(&Deletion { foreground: true, ..all(scope) }, keys).await
    }

    async fn delete_the_rest(&mut self) {
        let namespace = all(ObjectScope::cluster("", "v1", "Namespace", "namespaces"));
        self.delete_each(&namespace, Ok(vec![ObjectKey::new("", NAMESPACE)])).await;
        for scope in labelled() {
            let keys = scope.keys(self.client, |_| true).await;
            self.delete_each(&all(scope), keys).await;
        }
    }

    /// The interceptor is gone: what it added is taken back here, and no pod waits for it in a next installation.
    async fn take_back_surges(&mut self) {
        self.report.progress("taking back what surges have added");
        let deployments = ObjectScope::cluster("apps", "v1", "Deployment", "deployments");
        self.undo_annotated(Undoing { scope: deployments, plan: surge::take_back_replicas }, RECORD).await;
        let autoscalers =
            ObjectScope::cluster("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers");
        self.undo_annotated(Undoing { scope: autoscalers, plan: surge::take_back_min_replicas }, RECORD)
            .await;
        let pods = ObjectScope::cluster("", "v1", "Pod", "pods");
        self.undo_annotated(Undoing { scope: pods, plan: surge::unregister }, &surge::registration()).await;
    }

    async fn release_nodes(&mut self) {
        self.report.progress("cleaning up nodes");
        let nodes = Undoing { scope: ObjectScope::cluster("", "v1", "Node", "nodes"), plan: node::release };
        let has_something = |node: &DynamicObject| (nodes.plan)(node) != RemovalPlan::Nothing;
        let keys = nodes.scope.keys(self.client, has_something).await;
        self.undo_all(&nodes, keys).await;
    }

    /// Whether Drydock of this namespace serves our kinds: another API server of the group is none of ours.
    async fn is_registered(&self) -> Result<bool, RemovalError> {
        let (scope, key) = (api_services(), registration());
        let found = find(&scope.api_of(self.client, &key), &key.name).await;
        let failed = |cause| RemovalError::Step { what: scope.name_of(&key), cause: Box::new(cause) };
        Ok(found.map_err(failed)?.is_some_and(|service| is_ours(&service)))
    }

    async fn delete_all(&mut self, deletion: &Deletion, keys: Vec<ObjectKey>) -> Result<(), RemovalError> {
        let mut deleted: Vec<DeletedObject> = Vec::new();
        for key in keys {
            deleted.extend(deletion.delete(self.client, &key, self.is_dry_run, &mut self.report).await?);
        }
        let still_there = wait_until_gone(&deleted, OBJECTS_GO_WITHIN).await;
        still_there.map_or(Ok(()), |object| Err(RemovalError::StillThere(object.what.clone())))
    }

    /// Deletes each by itself. What cannot be deleted keeps no node cordoned.
    async fn delete_each(&mut self, deletion: &Deletion, keys: Result<Vec<ObjectKey>, Error>) {
        match keys.map_err(listing(&deletion.scope)) {
            Ok(keys) => {
                for key in keys {
                    if let Err(error) = self.delete_all(deletion, vec![key]).await {
                        self.report.problem(&error.to_string());
                    }
                }
            }
            Err(error) => self.report.problem(&error.to_string()),
        }
    }

    async fn undo_annotated(&mut self, undoing: Undoing, annotation: &str) {
        let keys = undoing.scope.keys_by_metadata(self.client, |object| {
            object.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(annotation))
        });
        let keys = keys.await;
        self.undo_all(&undoing, keys).await;
    }

    async fn undo_all(&mut self, undoing: &Undoing, keys: Result<Vec<ObjectKey>, Error>) {
        match keys {
            Ok(keys) => {
                for key in keys {
                    undoing.undo(self.client, &key, self.is_dry_run, &mut self.report).await;
                }
            }
            Err(error) => self.report.problem(&listing(&undoing.scope)(error).to_string()),
        }
    }
}

fn api_services() -> ObjectScope {
    ObjectScope::cluster("apiregistration.k8s.io", "v1", "APIService", "apiservices")
}

fn registration() -> ObjectKey {
    ObjectKey::new("", &format!("{VERSION}.{GROUP}"))
}

fn is_ours(api_service: &DynamicObject) -> bool {
    api_service.data["spec"]["service"]["namespace"] == NAMESPACE
}

/// All objects of a scope.
fn all(scope: ObjectScope) -> Deletion {
    Deletion { scope, foreground: false, is_meant: |_| true }
}

/// What deploy/ makes outside of its namespace.
fn labelled() -> Vec<ObjectScope> {
    let (rbac, admission) = ("rbac.authorization.k8s.io", "admissionregistration.k8s.io");
    let of_cluster = [
        (rbac, "ClusterRole", "clusterroles"),
        (rbac, "ClusterRoleBinding", "clusterrolebindings"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema", "flowschemas"),
        (admission, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
        (admission, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    ];
    let of_system = [(rbac, "Role", "roles"), (rbac, "RoleBinding", "rolebindings")];
    let scope = |(group, kind, plural)| ObjectScope::cluster(group, "v1", kind, plural).with_labels(LABEL);
    let in_system = of_system.map(scope).map(|scope| scope.in_namespace("kube-system"));
    of_cluster.map(scope).into_iter().chain(in_system).collect()
}

fn listing(scope: &ObjectScope) -> impl Fn(Error) -> RemovalError {
    let what = format!("listing {}", scope.resource.plural);
    move |cause| RemovalError::Step { what: what.clone(), cause: Box::new(cause) }
}
