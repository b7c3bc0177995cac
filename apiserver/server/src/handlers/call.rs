//! A request on a resource, with everything that the verbs need.

use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_machinery::Object;
use drydock_machinery::kind::{Kind, Names, Now};
use drydock_machinery::table::IncludeObject;
use drydock_storage::backend::{Priority, Revision, WriteContext};
use drydock_storage::storage::{Storage, StorageError, Stored};
use http::{HeaderMap, Response, StatusCode};
use tokio_util::sync::CancellationToken;

use super::delete_options::DeleteOptions;
use super::metadata;
use super::replaced_bytes::ReplacedBytes;
use crate::admission::{Admission, Attributes, Operation, Phase, RequestOptions, Warnings};
use crate::api_group::Resource;
use crate::audit::Trail;
use crate::auth::authn::Caller;
use crate::flow_control::PriorityLevel;
use crate::flow_control::fair_budget::FairBudget;
use crate::handlers::fence::Term;
use crate::handlers::managed;
use crate::metrics::WatchEvents;
use crate::request::info::{RequestInfo, Verb};
use crate::request::user::User;
use crate::request::write_options::WriteOptions;
use crate::watch::Recent;
use crate::wire::encode::{self, ObjectView, include_object, object_bytes};
use crate::wire::negotiate::{self, Output, Transform};
use crate::wire::storage_error;

/// Decides whether an apply may create what it finds absent: the URL's own verb was `patch`.
#[async_trait]
pub trait CreateAuthorizer: Send + Sync + 'static {
    /// The refusal, if the user may not create the object that the URL names.
    async fn may_create(&self, caller: &Caller, user: &User, info: &RequestInfo) -> Result<(), ApiError>;
}

/// A request on a resource.
pub struct Call {
    /// The resource.
    pub resource: Arc<Resource>,
    /// What is asked.
    pub info: Arc<RequestInfo>,
    /// Who sent the request.
    pub caller: Caller,
    /// Who asks: the caller, or as whom the caller acts.
    pub user: Arc<User>,
    /// The user's priority level.
    pub level: PriorityLevel,
    /// Headers.
    pub headers: HeaderMap,
    /// Where what becomes known of the request is logged.
    pub audit: Trail,
    /// Warnings so far.
    pub warnings: Arc<Warnings>,
    /// The moment of the request.
    pub now: Now,
    /// Who may create by applying.
    pub authorizer: Option<Arc<dyn CreateAuthorizer>>,
    /// The term in which a writer that takes turns writes.
    pub term: Option<Term>,
    /// Ends watches.
    pub shutdown: CancellationToken,
    /// Counts the events of watches.
    pub watch_events: WatchEvents,
    /// What watches have framed.
    pub recent: Arc<Recent>,
    /// What each flow has put into the history lately.
    pub replaced_bytes: Arc<ReplacedBytes>,
    /// Of the objects that lists have read from the store.
    pub lists: Arc<FairBudget>,
}

impl Call {
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

    /// What each write of the request has in common; `ordinary` is the priority for users who are none of the cluster's.
    pub fn write_context(&self, ordinary: Priority) -> WriteContext<'_> {
        let needed = if self.on_status() { Priority::Needed } else { ordinary };
        let priority = if self.level.is_of_cluster() { Priority::System } else { needed };
        WriteContext { guard: self.term.as_ref().map(Term::guard), priority }
    }

    /// What went wrong in storage, for the client.
    pub fn storage_error(&self, error: StorageError, operation: &str) -> ApiError {
        self.storage_error_of(error, &self.info.name, operation)
    }

    /// The same, of an object that the URL does not name.
    pub fn storage_error_of(&self, error: StorageError, name: &str, operation: &str) -> ApiError {
        if let (StorageError::GuardFailed, Some(term)) = (&error, &self.term) {
            term.forget();
        }
        storage_error::translate(error, self.names(), name, operation)
    }

    /// The object does not exist.
    pub fn not_found(&self) -> ApiError {
        ApiError::not_found(self.names().group, self.names().plural, &self.info.name)
    }

    /// A refusal of a state that is not there.
    pub fn conflict(&self, why: impl std::fmt::Display) -> ApiError {
        ApiError::conflict(self.names().group, self.names().plural, &self.info.name, why)
    }

    /// How an answer is written; asked before anything is done.
    pub fn view(&self) -> Result<ObjectView, ApiError> {
        let streams = matches!(self.info.verb, Verb::List | Verb::Watch);
        let output = negotiate::document(&self.headers, &self.info.query, streams)?;
        if streams {
            self.check_number(output.transform)?;
        }
        self.view_as(output)
    }

    /// 406 for the metadata of one object where there are many, and the other way round
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
        encode::one(status, stored, view, &self.headers)
    }

    /// An object that was not stored, to be answered as if it were.
    pub fn unstored(&self, object: Object, revision: Revision) -> Arc<Stored> {
        let key = self.key_of(object.namespace(), object.name());
        Arc::new(Stored::new(key, object, revision))
    }

    /// Asks the admissions of a phase about a write. What they change in it is not taken over.
    pub async fn admit(
        &self,
        phase: Phase,
        write: Write<'_>,
        old: Option<&Object>,
        new: Option<&Object>,
    ) -> Result<(), ApiError> {
        let attributes = self.attributes(write, old, new);
        for admission in self.admissions(phase) {
            match phase {
                Phase::BeforeValidation => drop(admission.mutate(&attributes).await?),
                Phase::AfterValidation => admission.admit(&attributes).await?,
            }
        }
        Ok(())
    }

    /// Asks those before validation about a write, which may change the new object.
    pub async fn mutate(
        &self,
        write: Write<'_>,
        old: Option<&Object>,
        new: &mut Object,
    ) -> Result<(), ApiError> {
        let mut changed: Option<Object> = None;
        for admission in self.admissions(Phase::BeforeValidation) {
            let attributes = self.attributes(write, old, Some(changed.as_ref().unwrap_or(new)));
            if let Some(object) = admission.mutate(&attributes).await? {
                changed = Some(object);
            }
        }
        if let Some(mut object) = changed {
            managed::keep_readable(self, &mut object, new);
            metadata::dedup_owner_references_after_admission(self, &mut object);
            *new = object;
        }
        Ok(())
    }

    fn admissions(&self, phase: Phase) -> impl Iterator<Item = &Arc<dyn Admission>> {
        self.resource.admission.iter().filter(move |admission| admission.phase() == phase)
    }

    fn attributes<'a>(
        &'a self,
        write: Write<'a>,
        old: Option<&'a Object>,
        new: Option<&'a Object>,
    ) -> Attributes<'a> {
        Attributes {
            caller: &self.caller,
            user: &self.user,
            operation: write.operation,
            verb: self.info.verb.as_str(),
            kind: self.kind(),
            names: self.names(),
            subresource: &self.info.subresource,
            namespace: &self.info.namespace,
            name: new.map_or(&self.info.name, |object| object.name()),
            old,
            new,
            dry_run: write.dry_run,
            options: write.options,
            deadline: self.caller.deadline(),
            warnings: &self.warnings,
            audit: &self.audit,
        }
    }
}

/// What admission is told of a write beside the objects.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    operation: Operation,
    dry_run: bool,
    options: RequestOptions<'a>,
}

impl<'a> Write<'a> {
    /// A create, update or patch.
    pub fn of(call: &'a Call, operation: Operation, options: &WriteOptions) -> Self {
        Self { operation, dry_run: options.dry_run, options: RequestOptions::Write(&call.info.query) }
    }

    /// A delete.
    pub fn removal(options: &'a DeleteOptions) -> Self {
        let dry_run = options.is_dry_run();
        Self { operation: Operation::Delete, dry_run, options: RequestOptions::Delete(options) }
    }
}
