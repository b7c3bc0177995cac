//! One object.

use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_storage::storage::ReadAt;
use http::{Response, StatusCode};

use super::context::RequestContext;
use crate::request::list_options::{malformed, revision};

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
