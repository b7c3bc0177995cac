//! Removal of many objects. Not atomic, but a refusal by admission of any one of them removes none.

use axum::body::Body;
use drydock_machinery::ApiError;
use http::Response;

use super::call::Call;
use super::delete::{admit, remove};
use super::delete_options::DeleteOptions;
use super::{list, selection};
use crate::encode;
use crate::list_options::ListOptions;

/// DELETE of a collection; answers what was removed.
pub async fn delete_collection(call: &Call, request: Body) -> Result<Response<Body>, ApiError> {
    let view = call.view()?;
    let list_options = ListOptions::parse(&call.info.query, false)?;
    let read = list_options.read()?;
    selection::scope(call)?;
    let options = DeleteOptions::read(call, request).await?;
    let page = list::read(call, &read).await?;
    for stored in &page.items {
        admit(call, &stored.object, options.is_dry_run()).await?;
    }
    for stored in &page.items {
        remove(call, &stored.key, &options).await?;
    }
    Ok(encode::list(page, view, &call.headers))
}
