//! A new object.

use std::sync::Arc;

use axum::body::Body;
use drydock_machinery::meta::{
    fill_system_fields, generate_name, validate_object_meta_create, wipe_system_fields,
};
use drydock_machinery::{ApiError, Object};
use drydock_storage::backend::{Priority, Revision};
use drydock_storage::storage::{ReadAt, StorageError, Stored};
use http::{Response, StatusCode};

use super::admit::Write;
use super::call::Call;
use super::{metadata, quota, size};
use crate::admission::{Operation, Phase};
use crate::handlers::managed;
use crate::request::spans;
use crate::request::write_options::{WriteKind, WriteOptions, write_options};
use crate::wire::body::{self, Read};
use crate::wire::codec;

/// Attempts at a generated name that is free.
const NAME_ATTEMPTS: u32 = 8;

/// POST to a collection.
pub async fn create(call: &Call, body: &Read) -> Result<Response<Body>, ApiError> {
    let view = call.view()?;
    let format = body::format(&call.headers)?;
    let options = write_options(&call.info.query, &call.headers, WriteKind::Create)?;
    let mut object = codec::decode(body, format, call.kind(), options.field_validation, &call.warnings)?;
    call.audit.request(&object);
    wipe_system_fields(&mut object);
    metadata::check_namespace(call, &mut object)?;
    metadata::dedup_owner_references(call, &mut object);
    let object = managed::created(call, object, &options);
    let stored = insert(call, object, &options).await?;
    Ok(call.answer(StatusCode::CREATED, &stored, &view))
}

/// Stores a new object, with a generated name if it asks for one and its kind takes that.
pub async fn insert(
    call: &Call,
    mut object: Object,
    options: &WriteOptions,
) -> Result<Arc<Stored>, ApiError> {
    call.mutate(Write::of(call, Operation::Create, options), None, &mut object).await?;
    check_place(call, &mut object)?;
    let base = generate_name_of(&object);
    if !object.name().is_empty() || base.is_empty() || !call.kind().allows_generate_name() {
        return insert_named(call, object, options, false).await;
    }
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut named = object.clone();
        named.set_meta("name", Some(generate_name(&base, rand::random()).into()));
        match insert_named(call, named, options, true).await {
            Err(error) if error.reason() == "AlreadyExists" && attempt < NAME_ATTEMPTS => {}
            result => return result,
        }
    }
}

/// Whatever admission made of it, it is stored where the request said (k8s.io/apiserver pkg/registry/rest/create.go,
/// BeforeCreate). A new object may be given another name, but not by an update or apply that names it in its URL.
fn check_place(call: &Call, object: &mut Object) -> Result<(), ApiError> {
    metadata::check_namespace(call, object)?;
    if call.info.name.is_empty() { Ok(()) } else { metadata::check_name(call, object) }
}

async fn insert_named(
    call: &Call,
    mut object: Object,
    options: &WriteOptions,
    generated: bool,
) -> Result<Arc<Stored>, ApiError> {
    let uid = uuid::Uuid::new_v4().to_string();
    fill_system_fields(&mut object, &uid, call.now);
    object.set_meta("generation", call.kind().counts_generation().then(|| 1.into()));
    call.kind().prepare_for_create(&mut object);
    validate(call, &object)?;
    size::check(call, &object)?;
    for warning in call.kind().warnings(&object, None) {
        call.warnings.add(warning);
    }
    let write = Write::of(call, Operation::Create, options);
    call.admit(Phase::AfterValidation, write, None, Some(&object)).await?;
    refuse_version(&mut object)?;
    let key = call.key_of(&call.info.namespace, object.name());
    let room = quota::reserve(call, &key, &object)?;
    if options.dry_run {
        return dry_run(call, &key, object, generated).await;
    }
    quota::check_history_share(call)?;
    let name = object.name().to_owned();
    match store(call, &key, object).await {
        Ok(stored) => {
            if let Some(room) = room {
                room.made(stored.revision);
            }
            Ok(stored)
        }
        Err(StorageError::AlreadyExists) => Err(taken(call, &key, &name, generated).await),
        Err(error) => Err(call.storage_error_of(error, &name, "create")),
    }
}

/// The kind's own rules come first, so that their messages are shown; then those of any object.
fn validate(call: &Call, object: &Object) -> Result<(), ApiError> {
    let (kind, names_) = (call.kind(), call.names());
    let mut errors = kind.validate_create(object, call.now);
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

/// One that is too large is stored without the record of who owns its fields.
async fn store(call: &Call, key: &str, object: Object) -> Result<Arc<Stored>, StorageError> {
    let context = call.write_context(Priority::Ordinary);
    let result = match call.storage().create(key, object, context).await {
        Err(StorageError::Oversized(mut object)) => {
            object.remove_managed_fields();
            call.storage().create(key, *object, context).await
        }
        result => result,
    };
    result.inspect(|stored| spans::stored(&call.info, &call.user.name, key, stored.revision))
}

async fn dry_run(call: &Call, key: &str, object: Object, generated: bool) -> Result<Arc<Stored>, ApiError> {
    match call.storage().get(key, ReadAt::Latest).await {
        Ok(_) => Err(taken(call, key, object.name(), generated).await),
        Err(StorageError::NotFound) => Ok(Arc::new(Stored::without_revision(key.to_owned(), object))),
        Err(error) => Err(call.storage_error(error, "create")),
    }
}

/// 409, saying so if the object that is in the way is on its way out.
async fn taken(call: &Call, key: &str, name: &str, generated: bool) -> ApiError {
    let names = call.names();
    let mut error = if generated {
        ApiError::generate_name_conflict(names.group, names.plural, name)
    } else {
        ApiError::already_exists(names.group, names.plural, name)
    };
    let there = call.storage().get(key, ReadAt::NotOlderThan(Revision::default())).await;
    if there.is_ok_and(|stored| stored.object().deletion_timestamp().is_some()) {
        error.status.message = format!("object is being deleted: {}", error.status.message);
    }
    error
}

fn generate_name_of(object: &Object) -> String {
    let base = object.meta().and_then(|m| m.get("generateName")).and_then(|v| v.as_str());
    base.unwrap_or_default().to_owned()
}
