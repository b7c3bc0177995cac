//! Reads one object, or a page of objects.
//!
//! Objects that the cache holds are read from there. Objects of versions that it no longer holds are read from the
//! store for this request alone, and count against a budget of all lists until they are sent.

use std::sync::Arc;

use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_storage::backend::BackendError;
use drydock_storage::storage::{Page, PageOptions, ReadAt, StorageError};
use http::{Response, StatusCode};

use super::context::RequestContext;
use super::selection;
use crate::flow_control::fair_budget::FairBudget;
use crate::request::continue_token::Continue;
use crate::request::list_options::{ListOptions, malformed, revision};
use crate::wire::list::{self, ListPage};

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
const LIST_EXPIRED: &str = "The resourceVersion for the provided list is too old.";

/// Bytes of all objects that lists have read from the store and not sent. A user alone may have three eighths of it: a
/// list of 20,000 objects of 2 KB.
pub const LIST_ROOM: usize = 128 << 20;

/// The budget of the objects that lists have read from the store.
pub fn budget(bytes: usize) -> Arc<FairBudget> {
    let why = "There is no room to read all objects of a version that is not in memory any more: set a limit, or try \
               again later.";
    Arc::new(FairBudget::new(bytes, why))
}

/// GET of a collection.
pub async fn list(request: &RequestContext) -> Result<Response<Body>, ApiError> {
    let view = request.view()?;
    let options = ListOptions::parse(&request.info.query, false)?;
    let page = read(request, &options.read()?).await?;
    request.audit.response(|| list::list_json(&page, &view));
    Ok(list::list(page, view, &request.headers).await)
}

/// Reads a page.
pub async fn read(request: &RequestContext, read: &PageOptions) -> Result<ListPage, ApiError> {
    let scope = selection::scope(request)?;
    let mut room = request.lists.holding(&request.user, request.level, request.caller.deadline());
    let page =
        request.storage().list(&scope, read, &mut room).await.map_err(|e| expired(request, e, read))?;
    Ok(ListPage {
        room: Arc::new(room),
        continue_: next_token(&page, read),
        revision: page.revision.0,
        remaining: page.remaining.filter(|_| page.next.is_some()),
        items: page.items,
    })
}

/// Returns the token of the next page. A list that began at the latest state continues at the revision of its first
/// page; a list that continued after that had expired stays at the latest state.
fn next_token(page: &Page, read: &PageOptions) -> String {
    let Some(start) = page.next.clone() else { return String::new() };
    let continues_at_latest = read.start.is_some() && read.at == ReadAt::Latest;
    let revision = (!continues_at_latest).then_some(page.revision.0);
    Continue { revision, start }.encode()
}

fn expired(request: &RequestContext, error: StorageError, read: &PageOptions) -> ApiError {
    let gone =
        matches!(error, StorageError::Expired { .. } | StorageError::Backend(BackendError::Compacted { .. }));
    match &read.start {
        Some(start) if gone => {
            let mut error = ApiError::expired(CONTINUE_EXPIRED);
            let token = Continue { revision: None, start: start.clone() };
            error.status.continue_token = token.encode();
            error
        }
        None if gone => ApiError::expired(LIST_EXPIRED),
        _ => request.storage_error(error, "list"),
    }
}

/// GET of an object or its status.
pub async fn get(request: &RequestContext) -> Result<Response<Body>, ApiError> {
    if !request.info.query.get("export").unwrap_or_default().is_empty() {
        let why = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(ApiError::bad_request(why));
    }
    let view = request.view()?;
    let asked = revision(request.info.query.get("resourceVersion").unwrap_or_default())
        .map_err(|error| malformed(&error))?;
    let at = asked.map_or(ReadAt::Latest, ReadAt::NotOlderThan);
    let stored =
        request.storage().get(&request.key(), at).await.map_err(|e| request.storage_error(e, "get"))?;
    request.check_number(view.output.transform)?;
    Ok(request.answer(StatusCode::OK, &stored, &view))
}
