//! One object.

use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_storage::storage::ReadAt;
use http::{Response, StatusCode};

use super::call::Call;
use crate::request::list_options::{malformed, revision};

/// GET of an object or its status.
pub async fn get(call: &Call) -> Result<Response<Body>, ApiError> {
    if !call.info.query.get("export").unwrap_or_default().is_empty() {
        let why = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(ApiError::bad_request(why));
    }
    let view = call.view()?;
    let asked = revision(call.info.query.get("resourceVersion").unwrap_or_default())
        .map_err(|error| malformed(&error))?;
    let at = asked.map_or(ReadAt::Latest, ReadAt::NotOlderThan);
    let stored = call.storage().get(&call.key(), at).await.map_err(|e| call.storage_error(e, "get"))?;
    call.check_number(view.output.transform)?;
    Ok(call.answer(StatusCode::OK, &stored, &view))
}
