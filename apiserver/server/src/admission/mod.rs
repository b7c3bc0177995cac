//! Admission: what a deployment checks before a write, and changes in it, beyond what the kind itself demands.
//!
//! ```text
//!   decoded, defaulted, managed fields recorded
//!        │ BeforeValidation    may change the object; managed fields do not follow (as in k8s.io/apiserver)
//!   prepared, validated by the kind
//!        │ AfterValidation     sees what is to be stored
//!   stored
//! ```

mod host_namespaces;
pub mod namespace_lifecycle;
mod versioned;

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use drydock_machinery::kind::{Kind, Names};
use drydock_machinery::versions::Versions;
use drydock_machinery::{ApiError, Object};
use drydock_serving::auth::Caller;
use drydock_serving::request::query::Query;
use drydock_serving::request::user::User;
use serde_json::{Map, Value};

pub use host_namespaces::HostNamespaces;
pub use versioned::VersionedWrite;

use crate::audit::AuditContext;
use crate::request::delete_options::DeleteOptions;
use crate::request::warnings::Warnings;

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionOperation {
    /// A new object.
    Create,
    /// A changed object: update, patch, apply.
    Update,
    /// Removal; a deletecollection asks for each object.
    Delete,
}

impl AdmissionOperation {
    /// As AdmissionReview spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// The write that is to be admitted.
#[derive(Clone, Copy)]
pub struct AdmissionAttributes<'a> {
    /// The authenticated sender of the request.
    pub caller: &'a Caller,
    /// The user of the request: the caller, or the user that the caller acts as.
    pub user: &'a Arc<User>,
    /// What is done.
    pub operation: AdmissionOperation,
    /// The request's verb, as authorization spells it: `update`, `patch`, ...
    pub verb: &'a str,
    /// The kind, in the version of `old` and `new`.
    pub kind: &'a dyn Kind,
    /// The kind's names, in the version of `old` and `new`.
    pub names: &'a Names,
    /// The kind's names in the version of the request.
    pub requested: &'a Names,
    /// All versions of the kind; `None` if it has only one.
    pub versions: Option<&'a Versions>,
    /// Subresource, empty for the object itself.
    pub subresource: &'a str,
    /// Namespace, empty for a cluster-scoped object.
    pub namespace: &'a str,
    /// Name that the request gives; empty while `generateName` has not made one, and when a collection is deleted.
    pub name: &'a str,
    /// The state that is replaced or removed.
    pub old: Option<&'a Object>,
    /// The state that is to be stored.
    pub new: Option<&'a Object>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The options of the request.
    pub options: RequestOptions<'a>,
    /// When the answer must be there.
    pub deadline: Instant,
    /// Where warnings for the client go.
    pub warnings: &'a Warnings,
    /// Where annotations for the audit log go.
    pub audit: &'a AuditContext,
}

impl AdmissionAttributes<'_> {
    /// The same write of another object.
    pub fn with_new<'b>(&'b self, new: Option<&'b Object>) -> AdmissionAttributes<'b> {
        AdmissionAttributes { new, ..*self }
    }

    /// Name of the object, however the request came to it.
    pub fn object_name(&self) -> &str {
        self.old.or(self.new).map_or(self.name, Object::name)
    }

    /// 403 about the object, named as far as it has a name (k8s.io/apiserver pkg/admission/errors.go, NewForbidden).
    pub fn forbidden(&self, why: impl std::fmt::Display) -> ApiError {
        let given = [self.name, self.new.map_or("", Object::name)].into_iter().find(|name| !name.is_empty());
        let generate = || self.new?.meta()?.get("generateName")?.as_str().filter(|base| !base.is_empty());
        let name = given.or_else(generate).unwrap_or("Unknown");
        ApiError::forbidden(self.names.group, self.names.plural, name, why)
    }

    /// As [`Self::forbidden`], with the name of the object that a deletecollection is about to remove.
    pub fn forbidden_object(&self, why: impl std::fmt::Display) -> ApiError {
        ApiError::forbidden(self.names.group, self.names.plural, self.object_name(), why)
    }
}

/// The options of a request as admission shows them: CreateOptions, UpdateOptions, DeleteOptions.
#[derive(Clone, Copy, Debug)]
pub enum RequestOptions<'a> {
    /// In the URL, of a create, update or patch.
    Write(&'a Query),
    /// Those of a delete, which have been read.
    Delete(&'a DeleteOptions),
}

impl RequestOptions<'_> {
    /// As an object. A patch has the options of what it turns out to be (k8s.io/apiserver
    /// pkg/endpoints/handlers/patch.go, patchToUpdateOptions, patchToCreateOptions).
    pub fn to_json(self, operation: AdmissionOperation) -> Value {
        let mut fields = Map::new();
        let mut put = |field: &str, value: Value| fields.insert(field.to_owned(), value);
        let kind = match operation {
            AdmissionOperation::Create => "CreateOptions",
            AdmissionOperation::Update => "UpdateOptions",
            AdmissionOperation::Delete => "DeleteOptions",
        };
        put("kind", kind.into());
        put("apiVersion", "meta.k8s.io/v1".into());
        match self {
            Self::Write(query) => {
                let dry_run: Vec<&str> = query.all("dryRun").collect();
                if !dry_run.is_empty() {
                    put("dryRun", dry_run.into());
                }
                for field in ["fieldManager", "fieldValidation"] {
                    if let Some(value) = query.non_empty(field) {
                        put(field, value.into());
                    }
                }
            }
            Self::Delete(options) => fields.extend(options.to_fields()),
        }
        Value::Object(fields)
    }
}

/// When an admission runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the object is validated, as Kubernetes' mutating admission.
    BeforeValidation,
    /// On the object that is to be stored.
    AfterValidation,
}

/// Checks or changes writes. It may be asked again about the same write if another write came first.
#[async_trait]
pub trait Admission: Send + Sync + 'static {
    /// Returns the refusal, if it refuses. It does not change the object.
    async fn admit(&self, attributes: &AdmissionAttributes<'_>) -> Result<(), ApiError>;

    /// Runs before validation. Returns the object that replaces the new one, or `None` to leave it as it is. Such an
    /// object has been decoded by the kind's schema and defaulted.
    async fn mutate(&self, attributes: &AdmissionAttributes<'_>) -> Result<Option<Object>, ApiError> {
        self.admit(attributes).await.map(|()| None)
    }

    /// When it runs.
    fn phase(&self) -> Phase {
        Phase::AfterValidation
    }
}
