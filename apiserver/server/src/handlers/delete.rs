//! Deletes an object, at once or when its finalizers are done, and collections of objects.

use std::sync::Arc;

use axum::body::Body;
use drydock_machinery::error::{Status, StatusDetails};
use drydock_machinery::{ApiError, Object};
use drydock_serving::wire::status;
use drydock_storage::backend::{Priority, Revision};
use drydock_storage::storage::{NextState, Stored};
use futures::{TryStreamExt, stream};
use http::{Response, StatusCode};

use super::admit::AdmittedWrite;
use super::context::RequestContext;
use super::guaranteed_update::{self, Outcome, Step};
use super::metadata::mark_deleting;
use super::{get, selection};
use crate::admission::Phase;
use crate::request::delete_options::DeleteOptions;
use crate::request::list_options::ListOptions;
use crate::wire::body::{self, RequestBody};
use crate::wire::{codec, list};

/// DELETE of an object.
pub async fn delete(request: &RequestContext, body: &RequestBody) -> Result<Response<Body>, ApiError> {
    let view = request.view()?;
    let options = options(request, body)?;
    match remove(request, &request.key(), &options, None).await? {
        Outcome::Deleted(last) => {
            let success = Status::success(details(request, &last));
            request.audit.status(&success);
            Ok(status::success(StatusCode::OK, &success, view.output, &request.headers))
        }
        Outcome::Stored(pending) => {
            let accepted = options.orphan_dependents == Some(false);
            let status = if accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
            Ok(request.answer(status, &pending, &view))
        }
        Outcome::Missing => Err(request.not_found()),
    }
}

/// Reads the options of a delete or deletecollection.
pub fn options(request: &RequestContext, body: &RequestBody) -> Result<DeleteOptions, ApiError> {
    let options = if body.is_empty() {
        DeleteOptions::from_query(&request.info.query)?
    } else {
        let unreadable = |e: ApiError| match e.code() {
            400 => {
                let why = e.status.message;
                ApiError::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
            }
            _ => e,
        };
        let value = codec::value(body, body::format(&request.headers)?).map_err(unreadable)?;
        request.audit.request_body(|| value.to_string().into());
        DeleteOptions::from_value(value)?
    };
    let errors = options.errors();
    if errors.is_empty() {
        return Ok(options);
    }
    Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", errors))
}

/// Removes the object under `key`. Admission is not asked again about the state at revision `admitted`.
pub async fn remove(
    request: &RequestContext,
    key: &str,
    options: &DeleteOptions,
    admitted: Option<Revision>,
) -> Result<Outcome, ApiError> {
    let removal = Removal { request, options, admitted };
    guaranteed_update::run(request, key, "delete", options.is_dry_run(), &removal).await
}

fn details(request: &RequestContext, last: &Arc<Stored>) -> StatusDetails {
    let last = last.object();
    StatusDetails {
        name: last.name().to_owned(),
        group: request.names().group.to_owned(),
        kind: request.names().plural.to_owned(),
        uid: last.uid().to_owned(),
        ..StatusDetails::default()
    }
}

struct Removal<'a> {
    request: &'a RequestContext,
    options: &'a DeleteOptions,
    admitted: Option<Revision>,
}

impl Step for Removal<'_> {
    /// Marking an object that waits for its finalizers makes it larger, and has to succeed in a full store.
    const PRIORITY: Priority = Priority::Needed;

    async fn next(&self, present: &Stored) -> Result<NextState, ApiError> {
        let (revision, present) = (present.revision, &*present.object());
        self.check(present)?;
        if self.admitted != Some(revision) {
            admit(self.request, present, self.options).await?;
        }
        let finalizers = self.options.finalizers(&present.finalizers());
        let mut next = present.clone();
        if finalizers.is_empty() {
            return Ok(NextState::Delete(next));
        }
        next.set_meta("finalizers", Some(finalizers.into()));
        mark_deleting(&mut next, self.request.now);
        self.request.kind().prepare_for_delete(&mut next);
        Ok(NextState::Write(next))
    }
}

/// Asks every admission whether the object may be deleted.
pub async fn admit(
    request: &RequestContext,
    object: &Object,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    for phase in [Phase::BeforeValidation, Phase::AfterValidation] {
        request.admit(phase, AdmittedWrite::removal(options), Some(object), None).await?;
    }
    Ok(())
}

impl Removal<'_> {
    fn check(&self, present: &Object) -> Result<(), ApiError> {
        let Some(wanted) = &self.options.preconditions else { return Ok(()) };
        let names = self.request.names();
        let conflict = |why: String| ApiError::conflict(names.group, names.kind, present.name(), why);
        if let Some(uid) = wanted.uid.as_deref().filter(|uid| *uid != present.uid()) {
            let found = present.uid();
            return Err(conflict(format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({found}). The object might have been deleted and then recreated"
            )));
        }
        if let Some(version) = wanted.resource_version.as_deref().filter(|v| *v != present.resource_version())
        {
            let found = present.resource_version();
            return Err(conflict(format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({found}). The object might have been modified"
            )));
        }
        Ok(())
    }
}

/// Objects that are asked about, and then removed, at one time: one by one a large namespace would not be emptied
/// within the time of a request, and its deletion would never end.
const AT_ONCE: usize = 16;

/// DELETE of a collection; answers what was removed. It is not atomic, but no object is removed if admission refuses any
/// one of them, or if the answer cannot have the form that was asked for (kube-apiserver finds that out afterwards).
pub async fn delete_collection(
    request: &RequestContext,
    body: &RequestBody,
) -> Result<Response<Body>, ApiError> {
    let view = request.view()?;
    request.check_number(view.output.transform)?;
    let list_options = ListOptions::parse(&request.info.query, false)?;
    let read = list_options.read()?;
    selection::scope(request)?;
    let options = options(request, body)?;
    let page = get::read(request, &read).await?;
    let listed: Vec<_> = page.items.iter().collect();
    let all = || stream::iter(listed.iter().map(Ok));
    let admitted = all().try_for_each_concurrent(AT_ONCE, async |stored: &Arc<Stored>| {
        admit(request, &stored.object(), &options).await
    });
    admitted.await?;
    let removed = all().try_for_each_concurrent(AT_ONCE, async |stored: &Arc<Stored>| {
        remove(request, &stored.key, &options, Some(stored.revision)).await.map(drop)
    });
    removed.await?;
    request.audit.response(|| list::list_json(&page, &view));
    Ok(list::list(page, view, &request.headers).await)
}
