//! Asks admission about writes, and takes over what it changes in them.

use std::sync::Arc;

use drydock_machinery::{ApiError, Object};

use super::context::RequestContext;
use super::{managed_fields, metadata};
use crate::admission::{Admission, AdmissionAttributes, AdmissionOperation, Phase, RequestOptions};
use crate::request::delete_options::DeleteOptions;
use crate::request::write_options::WriteOptions;

impl RequestContext {
    /// Asks the admissions of a phase about a write. What they change is discarded.
    pub async fn admit(
        &self,
        phase: Phase,
        write: AdmittedWrite<'_>,
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

    /// Asks the admissions before validation about a write. They may change the new object.
    pub async fn mutate(
        &self,
        write: AdmittedWrite<'_>,
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
            managed_fields::keep_readable(self, &mut object, new);
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
        write: AdmittedWrite<'a>,
        old: Option<&'a Object>,
        new: Option<&'a Object>,
    ) -> AdmissionAttributes<'a> {
        AdmissionAttributes {
            caller: &self.caller,
            user: &self.user,
            operation: write.operation,
            verb: self.info.verb.as_str(),
            kind: self.kind(),
            names: self.names(),
            requested: self.names(),
            versions: self.resource.versions.as_deref(),
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

/// What admission gets of a write in addition to the objects.
#[derive(Clone, Copy)]
pub struct AdmittedWrite<'a> {
    operation: AdmissionOperation,
    dry_run: bool,
    options: RequestOptions<'a>,
}

impl<'a> AdmittedWrite<'a> {
    /// A create, update or patch.
    pub fn of(request: &'a RequestContext, operation: AdmissionOperation, options: &WriteOptions) -> Self {
        Self { operation, dry_run: options.dry_run, options: RequestOptions::Write(&request.info.query) }
    }

    /// A delete.
    pub fn removal(options: &'a DeleteOptions) -> Self {
        let dry_run = options.is_dry_run();
        Self { operation: AdmissionOperation::Delete, dry_run, options: RequestOptions::Delete(options) }
    }
}
