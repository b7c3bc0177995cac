//! A whole object in place of another, and what every change of an object has in common.

use std::sync::Arc;

use axum::body::Body;
use drydock_machinery::meta::{carry_system_fields, validate_object_meta_update, wipe_system_fields};
use drydock_machinery::{ApiError, Object};
use drydock_storage::storage::Stored;
use http::{Response, StatusCode};
use parking_lot::Mutex;

use super::admit::Write;
use super::call::Call;
use super::transition::{self, Next, Outcome, Step};
use super::{create, metadata, quota, size};
use crate::admission::{Operation, Phase};
use crate::handlers::managed;
use crate::request::write_options::{WriteKind, WriteOptions, write_options};
use crate::wire::body::{self, Read};
use crate::wire::codec;
use crate::wire::negotiate::Format;

/// PUT of an object or its status.
pub async fn update(call: &Call, body: &Read) -> Result<Response<Body>, ApiError> {
    let view = call.view()?;
    let options = write_options(&call.info.query, &call.headers, WriteKind::Update)?;
    let format = body::format(&call.headers)?;
    let replace = Replace { call, body, format, object: Mutex::default(), options: &options };
    let mut object = replace.decoded()?;
    call.audit.request(&object);
    replace.fit(&mut object)?;
    *replace.object.lock() = Some(object);
    match transition::run(call, &call.key(), "update", options.dry_run, &replace).await? {
        Outcome::Stored(stored) | Outcome::Deleted(stored) => Ok(call.answer(StatusCode::OK, &stored, &view)),
        Outcome::Missing if call.kind().allows_create_on_update() && !call.on_status() => {
            let created = create_instead(call, replace.object()?, &options).await?;
            Ok(call.answer(StatusCode::CREATED, &created, &view))
        }
        Outcome::Missing => Err(call.not_found()),
    }
}

/// A kind may take an update of what is not there for a create, by those who may create.
async fn create_instead(
    call: &Call,
    mut object: Object,
    options: &WriteOptions,
) -> Result<Arc<Stored>, ApiError> {
    metadata::check_uid(call, object.uid(), "")?;
    let Some(authorizer) = &call.authorizer else { return Err(call.not_found()) };
    authorizer.may_create(&call.caller, &call.user, &call.info).await?;
    wipe_system_fields(&mut object);
    object.set_resource_version("");
    create::insert(call, managed::created(call, object, options), options).await
}

struct Replace<'a> {
    call: &'a Call,
    body: &'a Read,
    format: Format,
    /// The object of the body, until the first try takes it: there is hardly ever a second one.
    object: Mutex<Option<Object>>,
    options: &'a WriteOptions,
}

impl Step for Replace<'_> {
    async fn next(&self, present: &Stored) -> Result<Next, ApiError> {
        let present = &*present.object();
        let object = self.object()?;
        metadata::check_uid(self.call, object.uid(), present.uid())?;
        let new = managed::updated(self.call, object, present, self.options);
        changed(self.call, new, present, self.options).await
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

    /// What the body says.
    fn decoded(&self) -> Result<Object, ApiError> {
        let Self { call, body, format, options, .. } = self;
        codec::decode(body, *format, call.kind(), options.field_validation, &call.warnings)
    }

    /// Checks it against the URL.
    fn fit(&self, object: &mut Object) -> Result<(), ApiError> {
        metadata::check_namespace(self.call, object)?;
        metadata::check_name(self.call, object)?;
        metadata::dedup_owner_references(self.call, object);
        Ok(())
    }
}

/// The next state, given the one that the client wants: versions, admission, the kind's rules, validation.
pub async fn changed(
    call: &Call,
    mut new: Object,
    old: &Object,
    options: &WriteOptions,
) -> Result<Next, ApiError> {
    let write = Write::of(call, Operation::Update, options);
    call.mutate(write, Some(old), &mut new).await?;
    // Admission may have made it another's (k8s.io/apiserver pkg/registry/rest/update.go, BeforeUpdate).
    metadata::check_namespace(call, &mut new)?;
    metadata::check_version(call, &mut new, old)?;
    carry_system_fields(&mut new, old);
    prepare(call, &mut new, old);
    validate(call, &new, old)?;
    for warning in call.kind().warnings(&new, Some(old)) {
        call.warnings.add(warning);
    }
    let mut new = managed::ignore_timestamps(new, old);
    size::fit(call, &mut new, old)?;
    quota::check_growth(call, &new, old)?;
    call.admit(Phase::AfterValidation, write, Some(old), Some(&new)).await?;
    Ok(if metadata::is_finished(&new, old) { Next::Delete(new) } else { Next::Write(new) })
}

fn prepare(call: &Call, new: &mut Object, old: &Object) {
    if call.on_status() {
        if call.kind().status_keeps_metadata() {
            metadata::keep_metadata(new, old);
        }
        call.kind().prepare_for_status_update(new, old);
    } else {
        call.kind().prepare_for_update(new, old);
    }
    if call.kind().counts_generation() {
        metadata::count_generation(new, old);
    }
}

fn validate(call: &Call, new: &Object, old: &Object) -> Result<(), ApiError> {
    let (kind, names) = (call.kind(), call.names());
    let mut errors = validate_object_meta_update(new, old, names.namespaced);
    errors.extend(if call.on_status() {
        kind.validate_status_update(new, old, call.now)
    } else {
        kind.validate_update(new, old, call.now)
    });
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid(names.group, names.kind, new.name(), errors))
    }
}
