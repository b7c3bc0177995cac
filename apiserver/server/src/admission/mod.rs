//! Admission: what a deployment checks before a write, beyond what the kind itself demands.

pub mod namespace_lifecycle;

use std::sync::Arc;

use async_trait::async_trait;
use drydock_machinery::kind::Names;
use drydock_machinery::{ApiError, Object};
use parking_lot::Mutex;

use crate::audit::Trail;
use crate::user::User;

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object: update, patch, apply.
    Update,
    /// Removal; a deletecollection asks for each object.
    Delete,
}

impl Operation {
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
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a Arc<User>,
    /// What is done.
    pub operation: Operation,
    /// The kind's names.
    pub names: &'a Names,
    /// Subresource, empty for the object itself.
    pub subresource: &'a str,
    /// Namespace, empty for a cluster-scoped object.
    pub namespace: &'a str,
    /// Object's name; empty while `generateName` has not made one.
    pub name: &'a str,
    /// The state that is replaced or removed.
    pub old: Option<&'a Object>,
    /// The state that is to be stored.
    pub new: Option<&'a Object>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// Where warnings for the client go.
    pub warnings: &'a Warnings,
    /// Where annotations for the audit log go.
    pub audit: &'a Trail,
}

/// When an admission runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the object is validated, as Kubernetes' mutating admission.
    BeforeValidation,
    /// On the object that is to be stored.
    AfterValidation,
}

/// One check. It does not change the object, and may be asked again for the same write after a lost race.
#[async_trait]
pub trait Admission: Send + Sync + 'static {
    /// Returns the refusal, if it refuses.
    async fn admit(&self, attributes: &Attributes<'_>) -> Result<(), ApiError>;

    /// When it runs.
    fn phase(&self) -> Phase {
        Phase::AfterValidation
    }
}

/// Warnings for the client, each kept once.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Vec<String>>);

impl Warnings {
    /// Adds a warning.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut all = self.0.lock();
        if !text.is_empty() && !all.contains(&text) {
            all.push(text);
        }
    }

    /// Takes what was added.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}
