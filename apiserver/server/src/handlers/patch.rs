//! A change to an object: JSON patch, merge patch, strategic merge patch, server-side apply.

use axum::body::Body;
use drydock_machinery::error::StatusDetails;
use drydock_machinery::patch::{json_patch, json_patch_errors, merge_patch};
use drydock_machinery::{ApiError, Object};
use drydock_storage::storage::{NextState, Stored};
use http::{Response, StatusCode};
use serde_json::Value;

use super::context::RequestContext;
use super::guaranteed_update::{self, Outcome, Step};
use super::update::changed;
use super::{create, managed_fields, metadata, patched};
use crate::request::write_options::{FieldValidation, WriteKind, WriteOptions, write_options};
use crate::wire::body::{self, RequestBody};

/// How a body changes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

/// PATCH of an object or its status.
pub async fn patch(request: &RequestContext, body: &RequestBody) -> Result<Response<Body>, ApiError> {
    let type_ = patch_type(&body::media_type(&request.headers))?;
    let view = request.view()?;
    let kind = if type_ == PatchType::Apply { WriteKind::Apply } else { WriteKind::Patch };
    let options = write_options(&request.info.query, &request.headers, kind)?;
    request.audit.request_body(|| body.bytes().clone());
    let errors = match type_ {
        _ if options.field_validation == FieldValidation::Ignore => Vec::new(),
        // These find duplicate fields when they read the body.
        PatchType::Apply | PatchType::Strategic => Vec::new(),
        PatchType::Merge => patched::merge_patch_errors(body),
        PatchType::Json => json_patch_errors(body),
    };
    let patch = Patching { request, type_, body, errors, options: &options };
    loop {
        return match guaranteed_update::run(request, &request.key(), "patch", options.dry_run, &patch).await?
        {
            Outcome::Stored(stored) | Outcome::Deleted(stored) => {
                Ok(request.answer(StatusCode::OK, &stored, &view))
            }
            Outcome::Missing if type_ != PatchType::Apply || request.on_status() => Err(request.not_found()),
            Outcome::Missing => match patch.create().await {
                // Another writer created it first: apply to that.
                Err(error) if error.reason() == "AlreadyExists" && !options.dry_run => continue,
                result => Ok(request.answer(StatusCode::CREATED, &*result?, &view)),
            },
        };
    }
}

fn patch_type(media_type: &str) -> Result<PatchType, ApiError> {
    match media_type {
        "application/json-patch+json" => Ok(PatchType::Json),
        "application/merge-patch+json" => Ok(PatchType::Merge),
        "application/strategic-merge-patch+json" => Ok(PatchType::Strategic),
        "application/apply-patch+yaml" => Ok(PatchType::Apply),
        _ => Err(ApiError::new(
            415,
            "UnsupportedMediaType",
            "415: Unsupported Media Type",
            Some(StatusDetails::default()),
        )),
    }
}

struct Patching<'a> {
    request: &'a RequestContext,
    type_: PatchType,
    body: &'a RequestBody,
    /// What fieldValidation finds in the body itself.
    errors: Vec<String>,
    options: &'a WriteOptions,
}

impl Step for Patching<'_> {
    async fn next(&self, present: &Stored) -> Result<NextState, ApiError> {
        let present = present.object();
        let new = self.patched(&present)?;
        changed(self.request, new, &present, self.options).await
    }
}

impl Patching<'_> {
    fn patched(&self, present: &Object) -> Result<Object, ApiError> {
        let request = self.request;
        let new = match self.type_ {
            PatchType::Apply => managed_fields::applied(request, self.body, Some(present), self.options)?,
            PatchType::Strategic => {
                patched::strategically_patched(present, self.body, request, self.options)?
            }
            PatchType::Json => self.patched_as_json(present, json_patch)?,
            PatchType::Merge => self.patched_as_json(present, merge_patch)?,
        };
        let mut new = match self.type_ {
            PatchType::Apply => new,
            _ => managed_fields::updated(request, new, present, self.options),
        };
        self.check(&mut new)?;
        Ok(new)
    }

    fn patched_as_json(
        &self,
        present: &Object,
        patch: impl Fn(&Value, &[u8]) -> Result<Value, ApiError>,
    ) -> Result<Object, ApiError> {
        let patched = patch(&present.to_value(), self.body)?;
        patched::patched(patched, &self.errors, self.request, self.options)
    }

    fn check(&self, new: &mut Object) -> Result<(), ApiError> {
        metadata::check_namespace(self.request, new)?;
        metadata::check_name(self.request, new)?;
        // kube-apiserver checks what a patch made only after admission, and its warning says so.
        metadata::dedup_owner_references_after_admission(self.request, new);
        Ok(())
    }

    /// Creates the object that an apply has not found, if the user may create it.
    async fn create(&self) -> Result<std::sync::Arc<Stored>, ApiError> {
        let request = self.request;
        let Some(authorizer) = &request.authorizer else {
            return Err(ApiError::internal("no authorizer provided, unable to authorize a create on update"));
        };
        let mut new = managed_fields::applied(request, self.body, None, self.options)?;
        if !new.uid().is_empty() {
            return Err(request.conflict(format_args!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                new.uid()
            )));
        }
        self.check(&mut new)?;
        // No object exists, so there is no version to compare with.
        new.set_resource_version("");
        authorizer.may_create(&request.caller, &request.user, &request.info).await?;
        create::insert(request, new, self.options).await
    }
}
