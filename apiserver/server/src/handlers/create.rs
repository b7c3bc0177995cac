//! Creates an object: POST, or a PUT or apply that finds none.

use std::sync::Arc;

use axum::body::Body;
use drydock_machinery::meta::{
    fill_system_fields, generate_name, validate_object_meta_create, wipe_system_fields,
};
use drydock_machinery::{ApiError, Object};
use drydock_storage::backend::{Priority, Revision};
use drydock_storage::storage::{ReadAt, StorageError, Stored};
use http::{Response, StatusCode};

use super::admit::AdmittedWrite;
use super::context::RequestContext;
use super::{metadata, quota, size};
use crate::admission::{AdmissionOperation, Phase};
use crate::handlers::managed_fields;
use crate::request::spans;
use crate::request::write_options::{WriteKind, WriteOptions, write_options};
use crate::wire::body::{self, RequestBody};
use crate::wire::codec;

/// Maximum attempts to find a generated name that is free.
const NAME_ATTEMPTS: u32 = 8;

/// POST to a collection.
pub async fn create(request: &RequestContext, body: &RequestBody) -> Result<Response<Body>, ApiError> {
    let view = request.view()?;
    let format = body::format(&request.headers)?;
    let options = write_options(&request.info.query, &request.headers, WriteKind::Create)?;
    let mut object =
        codec::decode(body, format, request.kind(), options.field_validation, &request.warnings)?;
    request.audit.request(&object);
    wipe_system_fields(&mut object);
    metadata::check_namespace(request, &mut object)?;
    metadata::dedup_owner_references(request, &mut object);
    let object = managed_fields::created(request, object, &options);
    let stored = insert(request, object, &options).await?;
    Ok(request.answer(StatusCode::CREATED, &stored, &view))
}

/// Stores a new object, with a generated name if it asks for one and its kind takes that.
pub async fn insert(
    request: &RequestContext,
    mut object: Object,
    options: &WriteOptions,
) -> Result<Arc<Stored>, ApiError> {
    request
        .mutate(AdmittedWrite::of(request, AdmissionOperation::Create, options), None, &mut object)
        .await?;
    check_place(request, &mut object)?;
    let base = generate_name_of(&object);
    if !object.name().is_empty() || base.is_empty() || !request.kind().allows_generate_name() {
        return insert_named(request, object, options, false).await;
    }
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut named = object.clone();
        named.set_meta("name", Some(generate_name(&base, rand::random()).into()));
        match insert_named(request, named, options, true).await {
            Err(error) if error.reason() == "AlreadyExists" && attempt < NAME_ATTEMPTS => {}
            result => return result,
        }
    }
}

/// Admission cannot change where the object is stored (k8s.io/apiserver pkg/registry/rest/create.go,
/// BeforeCreate). A new object may be given another name, but not by an update or apply that names it in its URL.
fn check_place(request: &RequestContext, object: &mut Object) -> Result<(), ApiError> {
    metadata::check_namespace(request, object)?;
    if request.info.name.is_empty() { Ok(()) } else { metadata::check_name(request, object) }
}

async fn insert_named(
    request: &RequestContext,
    mut object: Object,
    options: &WriteOptions,
    generated: bool,
) -> Result<Arc<Stored>, ApiError> {
    let uid = uuid::Uuid::new_v4().to_string();
    fill_system_fields(&mut object, &uid, request.now);
    object.set_meta("generation", request.kind().counts_generation().then(|| 1.into()));
    prepare_and_validate(request, &mut object)?;
    request.kind().note_creator(&mut object, request.user.flow());
    size::check(request, &object)?;
    for warning in request.kind().warnings(&object, None) {
        request.warnings.add(warning);
    }
    let write = AdmittedWrite::of(request, AdmissionOperation::Create, options);
    request.admit(Phase::AfterValidation, write, None, Some(&object)).await?;
    refuse_version(&mut object)?;
    let key = request.key_of(&request.info.namespace, object.name());
    let room = quota::reserve(request, &key, &object)?;
    if options.dry_run {
        return dry_run(request, &key, object, generated).await;
    }
    quota::check_history_share(request)?;
    let name = object.name().to_owned();
    match store(request, &key, object).await {
        Ok(stored) => {
            if let Some(room) = room {
                room.made(stored.revision);
            }
            Ok(stored)
        }
        Err(StorageError::AlreadyExists) => Err(taken(request, &key, &name, generated).await),
        Err(error) => Err(request.storage_error_of(error, &name, "create")),
    }
}

/// The kind's own rules come first, so that their messages are shown; then those of any object.
fn prepare_and_validate(request: &RequestContext, object: &mut Object) -> Result<(), ApiError> {
    let (kind, names_) = (request.kind(), request.names());
    kind.record_user(object, None, &request.user.name);
    let mut errors = kind.before_create(object, request.now);
    if errors.is_empty() {
        errors = validate_object_meta_create(object, names_.namespaced, kind.name_rule());
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(names_.group, names_.kind, object.name(), errors))
}

fn refuse_version(object: &mut Object) -> Result<(), ApiError> {
    if !matches!(object.resource_version(), "" | "0") {
        return Err(ApiError::new(
            500,
            "",
            "resourceVersion should not be set on objects to be created",
            None,
        ));
    }
    object.set_resource_version("");
    Ok(())
}

/// Stores the object, without its managed fields if it is too large.
async fn store(request: &RequestContext, key: &str, object: Object) -> Result<Arc<Stored>, StorageError> {
    let context = request.write_context(Priority::Ordinary);
    let result = match request.storage().create(key, object, context).await {
        Err(StorageError::Oversized(mut object)) => {
            object.remove_managed_fields();
            request.storage().create(key, *object, context).await
        }
        result => result,
    };
    result.inspect(|stored| spans::stored(&request.info, &request.user.name, key, stored.revision))
}

async fn dry_run(
    request: &RequestContext,
    key: &str,
    object: Object,
    generated: bool,
) -> Result<Arc<Stored>, ApiError> {
    match request.storage().get(key, ReadAt::Latest).await {
        Ok(_) => Err(taken(request, key, object.name(), generated).await),
        Err(StorageError::NotFound) => {
            let object = request.storage().would_store(object)?;
            Ok(Arc::new(Stored::without_revision(key.to_owned(), object)))
        }
        Err(error) => Err(request.storage_error(error, "create")),
    }
}

/// Returns a 409, whose message says so if the existing object is being deleted.
async fn taken(request: &RequestContext, key: &str, name: &str, generated: bool) -> ApiError {
    let names = request.names();
    let mut error = if generated {
        ApiError::generate_name_conflict(names.group, names.plural, name)
    } else {
        ApiError::already_exists(names.group, names.plural, name)
    };
    let there = request.storage().get(key, ReadAt::NotOlderThan(Revision::default())).await;
    if there.is_ok_and(|stored| stored.object().deletion_timestamp().is_some()) {
        error.status.message = format!("object is being deleted: {}", error.status.message);
    }
    error
}

fn generate_name_of(object: &Object) -> String {
    let base = object.meta().and_then(|m| m.get("generateName")).and_then(|v| v.as_str());
    base.unwrap_or_default().to_owned()
}
