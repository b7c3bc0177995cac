//! Replaces an object by a whole new one, and does what every change of an object has in common.

use std::sync::Arc;

use axum::body::Body;
use drydock_machinery::meta::{carry_system_fields, validate_object_meta_update, wipe_system_fields};
use drydock_machinery::{ApiError, Object};
use drydock_serving::wire::negotiate::WireFormat;
use drydock_storage::storage::{NextState, Stored};
use http::{Response, StatusCode};
use parking_lot::Mutex;

use super::admit::AdmittedWrite;
use super::context::RequestContext;
use super::guaranteed_update::{self, Outcome, Step};
use super::{create, metadata, quota, size};
use crate::admission::{AdmissionOperation, Phase};
use crate::handlers::managed_fields;
use crate::request::write_options::{WriteKind, WriteOptions, write_options};
use crate::wire::body::{self, RequestBody};
use crate::wire::codec;

/// PUT of an object or its status.
pub async fn update(request: &RequestContext, body: &RequestBody) -> Result<Response<Body>, ApiError> {
    let view = request.view()?;
    let options = write_options(&request.info.query, &request.headers, WriteKind::Update)?;
    let format = body::format(&request.headers)?;
    let replace = Replace { request, body, format, object: Mutex::default(), options: &options };
    let mut object = replace.decoded()?;
    request.audit.request(&object);
    replace.fit(&mut object)?;
    *replace.object.lock() = Some(object);
    match guaranteed_update::run(request, &request.key(), "update", options.dry_run, &replace).await? {
        Outcome::Stored(stored) | Outcome::Deleted(stored) => {
            Ok(request.answer(StatusCode::OK, &stored, &view))
        }
        Outcome::Missing if request.kind().allows_create_on_update() && !request.on_status() => {
            let created = create_instead(request, replace.object()?, &options).await?;
            Ok(request.answer(StatusCode::CREATED, &created, &view))
        }
        Outcome::Missing => Err(request.not_found()),
    }
}

/// Creates the object of an update that found none, for a kind that allows it and a user that may create.
async fn create_instead(
    request: &RequestContext,
    mut object: Object,
    options: &WriteOptions,
) -> Result<Arc<Stored>, ApiError> {
    metadata::check_uid(request, object.uid(), "")?;
    let Some(authorizer) = &request.authorizer else { return Err(request.not_found()) };
    authorizer.may_create(&request.caller, &request.user, &request.info).await?;
    wipe_system_fields(&mut object);
    object.set_resource_version("");
    create::insert(request, managed_fields::created(request, object, options), options).await
}

struct Replace<'a> {
    request: &'a RequestContext,
    body: &'a RequestBody,
    format: WireFormat,
    /// The object of the body, until the first try takes it: there is hardly ever a second try.
    object: Mutex<Option<Object>>,
    options: &'a WriteOptions,
}

impl Step for Replace<'_> {
    async fn next(&self, present: &Stored) -> Result<NextState, ApiError> {
        let present = &*present.object();
        let object = self.object()?;
        metadata::check_uid(self.request, object.uid(), present.uid())?;
        let new = managed_fields::updated(self.request, object, present, self.options);
        changed(self.request, new, present, self.options).await
    }
}

impl Replace<'_> {
    /// The object that is to be stored.
    fn object(&self) -> Result<Object, ApiError> {
        let taken = self.object.lock().take();
        taken.map_or_else(
            || {
                let mut object = self.decoded()?;
                self.fit(&mut object).map(|()| object)
            },
            Ok,
        )
    }

    /// Decodes the body.
    fn decoded(&self) -> Result<Object, ApiError> {
        let Self { request, body, format, options, .. } = self;
        codec::decode(body, *format, request.kind(), options.field_validation, &request.warnings)
    }

    /// Checks it against the URL.
    fn fit(&self, object: &mut Object) -> Result<(), ApiError> {
        metadata::check_namespace(self.request, object)?;
        metadata::check_name(self.request, object)?;
        metadata::dedup_owner_references(self.request, object);
        Ok(())
    }
}

/// The next state, given the one that the client wants: versions, admission, the kind's rules, validation.
pub async fn changed(
    request: &RequestContext,
    mut new: Object,
    old: &Object,
    options: &WriteOptions,
) -> Result<NextState, ApiError> {
    let write = AdmittedWrite::of(request, AdmissionOperation::Update, options);
    request.mutate(write, Some(old), &mut new).await?;
    // Admission may have changed its namespace (k8s.io/apiserver pkg/registry/rest/update.go, BeforeUpdate).
    metadata::check_namespace(request, &mut new)?;
    metadata::check_version(request, &mut new, old)?;
    carry_system_fields(&mut new, old);
    prepare_and_validate(request, &mut new, old)?;
    for warning in request.kind().warnings(&new, Some(old)) {
        request.warnings.add(warning);
    }
    let mut new = managed_fields::ignore_timestamps(new, old);
    size::fit(request, &mut new, old)?;
    quota::check_growth(request, &mut new, old)?;
    request.admit(Phase::AfterValidation, write, Some(old), Some(&new)).await?;
    Ok(if metadata::is_finished(&new, old) { NextState::Delete(new) } else { NextState::Write(new) })
}

/// Lets the kind prepare the object, and returns what is wrong with it: with its metadata first.
fn prepare_and_validate(request: &RequestContext, new: &mut Object, old: &Object) -> Result<(), ApiError> {
    let (kind, names) = (request.kind(), request.names());
    let of_kind = if request.on_status() {
        if kind.status_keeps_metadata() {
            metadata::keep_metadata(new, old);
        }
        kind.before_status_update(new, old, request.now)
    } else {
        kind.record_user(new, Some(old), &request.user.name);
        kind.before_update(new, old, request.now)
    };
    if kind.counts_generation() {
        metadata::count_generation(new, old);
    }
    let mut errors = validate_object_meta_update(new, old, names.namespaced);
    errors.extend(of_kind);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid(names.group, names.kind, new.name(), errors))
    }
}
