//! A request on a resource, with everything that the verbs need.

use std::sync::Arc;

use axum::body::Body;
use drydock_machinery::kind::{Kind, Names, Now};
use drydock_machinery::table::IncludeObject;
use drydock_machinery::versions::Versions;
use drydock_machinery::{ApiError, Object};
use drydock_serving::auth::Caller;
use drydock_serving::auth::authz::CreateAuthorizer;
use drydock_serving::request::info::{RequestInfo, Verb};
use drydock_serving::request::user::User;
use drydock_serving::wire::negotiate::{self, Output, Transform};
use drydock_storage::backend::{Priority, Revision, WriteContext};
use drydock_storage::cache::QuotaUsage;
use drydock_storage::converted::ConvertedStorage;
use drydock_storage::storage::{Storage, StorageError, Stored};
use http::{HeaderMap, Response, StatusCode};
use tokio_util::sync::CancellationToken;

use crate::admission::Admission;
use crate::audit::AuditContext;
use crate::flow_control::fair_budget::FairBudget;
use crate::flow_control::{PriorityLevel, ReplacedBytes};
use crate::handlers::fencing::FencingToken;
use crate::metrics::WatchEvents;
use crate::request::warnings::Warnings;
use crate::watch::RecentFrames;
use crate::wire::object::{self, ObjectView, include_object, object_bytes};
use crate::wire::storage_error;

/// One resource that is served in one version, with its status subresource.
pub struct Resource {
    /// Names, schema and strategy.
    pub kind: Arc<dyn Kind>,
    /// Where its objects are.
    pub storage: Arc<dyn Storage>,
    /// Checks on writes, in order.
    pub admission: Vec<Arc<dyn Admission>>,
    /// How much of the kind's quota is used; `None` for a kind without one.
    pub usage: Option<Arc<QuotaUsage>>,
    /// All versions of the kind; `None` if it has only this one.
    pub versions: Option<Arc<Versions>>,
}

impl Resource {
    /// Returns the resource in each version in which it is served, the storage version first. `self` is in the storage
    /// version. Admission gets objects in the version of the request, and may convert them to another one.
    pub fn in_versions(self, versions: Versions) -> Vec<Self> {
        if versions.others().next().is_none() {
            return vec![self];
        }
        let versions = Arc::new(versions);
        let other = |kind: &Arc<dyn Kind>| Self {
            kind: kind.clone(),
            storage: Arc::new(ConvertedStorage::new(self.storage.clone(), versions.clone(), &**kind)),
            admission: self.admission.clone(),
            usage: self.usage.clone(),
            versions: Some(versions.clone()),
        };
        let others: Vec<_> = versions.others().map(other).collect();
        let first = Self { versions: Some(versions), ..self };
        std::iter::once(first).chain(others).collect()
    }
}

/// A request on a resource.
pub struct RequestContext {
    /// The resource.
    pub resource: Arc<Resource>,
    /// What is asked.
    pub info: Arc<RequestInfo>,
    /// The authenticated sender of the request.
    pub caller: Caller,
    /// The user of the request: the caller, or the user that the caller acts as.
    pub user: Arc<User>,
    /// The user's priority level.
    pub level: PriorityLevel,
    /// Headers.
    pub headers: HeaderMap,
    /// The audit context of the request.
    pub audit: AuditContext,
    /// Warnings so far.
    pub warnings: Arc<Warnings>,
    /// The moment of the request.
    pub now: Now,
    /// Decides whether an apply may create.
    pub authorizer: Option<Arc<dyn CreateAuthorizer>>,
    /// The fencing token that the write carries.
    pub fencing_token: Option<FencingToken>,
    /// Ends watches.
    pub shutdown: CancellationToken,
    /// Counts the events of watches.
    pub watch_events: WatchEvents,
    /// The frames that watches share.
    pub recent_frames: Arc<RecentFrames>,
    /// What each flow has recently put into the history.
    pub replaced_bytes: Arc<ReplacedBytes>,
    /// The memory budget for objects that lists read from the store.
    pub lists: Arc<FairBudget>,
}

impl RequestContext {
    /// The kind.
    pub fn kind(&self) -> &dyn Kind {
        self.resource.kind.as_ref()
    }

    /// Its names.
    pub fn names(&self) -> &Names {
        self.kind().names()
    }

    /// Its storage.
    pub fn storage(&self) -> &dyn Storage {
        self.resource.storage.as_ref()
    }

    /// Whether the request is about the status subresource.
    pub fn on_status(&self) -> bool {
        self.info.subresource == "status"
    }

    /// Storage key of an object of this name.
    pub fn key_of(&self, namespace: &str, name: &str) -> String {
        if self.names().namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    /// Storage key of the object that the URL names.
    pub fn key(&self) -> String {
        self.key_of(&self.info.namespace, &self.info.name)
    }

    /// Returns what a write of the request depends on. `ordinary` is its priority unless the object is in no
    /// namespace or the user is of the cluster.
    pub fn write_context(&self, ordinary: Priority) -> WriteContext<'_> {
        let priority = if !self.names().namespaced {
            Priority::Cluster
        } else if self.level.is_of_cluster() {
            Priority::System
        } else {
            ordinary
        };
        WriteContext { guard: self.fencing_token.as_ref().map(FencingToken::guard), priority }
    }

    /// Translates an error of storage for the client.
    pub fn storage_error(&self, error: StorageError, operation: &str) -> ApiError {
        self.storage_error_of(error, &self.info.name, operation)
    }

    /// The same for an object that the URL does not name.
    pub fn storage_error_of(&self, error: StorageError, name: &str, operation: &str) -> ApiError {
        if let (StorageError::GuardFailed, Some(token)) = (&error, &self.fencing_token) {
            token.forget();
        }
        storage_error::translate(error, self.names(), name, operation)
    }

    /// Returns a 404 for the object that the URL names.
    pub fn not_found(&self) -> ApiError {
        ApiError::not_found(self.names().group, self.names().plural, &self.info.name)
    }

    /// Returns a 409 for the object that the URL names.
    pub fn conflict(&self, why: impl std::fmt::Display) -> ApiError {
        ApiError::conflict(self.names().group, self.names().plural, &self.info.name, why)
    }

    /// Returns how an answer is written. To be called before anything is done, because it fails with 406.
    pub fn view(&self) -> Result<ObjectView, ApiError> {
        let streams = matches!(self.info.verb, Verb::List | Verb::Watch);
        let output = negotiate::document(&self.headers, &self.info.query, streams)?;
        if streams {
            self.check_number(output.transform)?;
        }
        self.view_as(output)
    }

    /// Returns 406 if the client wants the metadata of one object where there are many, or the other way round
    /// (k8s.io/apiserver pkg/endpoints/handlers/response.go, asPartialObjectMetadata).
    pub fn check_number(&self, transform: Transform) -> Result<(), ApiError> {
        let many = matches!(self.info.verb, Verb::List | Verb::DeleteCollection);
        let (package, kind) = (self.names().group.split('.').next().unwrap_or_default(), self.names().kind);
        let why = match transform {
            Transform::Partial(_) if many => {
                format!(
                    "you requested PartialObjectMetadata, but the requested object is a list (*{package}.{kind}List)"
                )
            }
            Transform::PartialList(_) if !many && self.info.verb != Verb::Watch => format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list (*{package}.{kind})"
            ),
            _ => return Ok(()),
        };
        Err(ApiError::new(406, "NotAcceptable", why, None))
    }

    /// The view of an output that has been negotiated.
    pub fn view_as(&self, output: Output) -> Result<ObjectView, ApiError> {
        let include = match output.transform {
            Transform::Table(_) => include_object(&self.info.query)?,
            _ => IncludeObject::default(),
        };
        Ok(ObjectView { kind: self.resource.kind.clone(), output, include, now: self.now })
    }

    /// Answers one object.
    pub fn answer(&self, status: StatusCode, stored: &Stored, view: &ObjectView) -> Response<Body> {
        self.audit.response(|| object_bytes(stored, &view.in_json(), true));
        object::one(status, stored, view, &self.headers)
    }

    /// An object that was not stored, to be answered as if it were.
    pub fn unstored(&self, object: Object, revision: Revision) -> Arc<Stored> {
        let key = self.key_of(object.namespace(), object.name());
        Arc::new(Stored::new(key, object, revision))
    }
}
