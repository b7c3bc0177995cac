//! Removal of many objects. Not atomic, but a refusal by admission of any one of them removes none.

use std::sync::Arc;

use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_storage::storage::Stored;
use futures::{TryStreamExt, stream};
use http::Response;

use super::context::RequestContext;
use super::delete::{self, admit, remove};
use super::{list, selection};
use crate::request::list_options::ListOptions;
use crate::wire::body::Read;
use crate::wire::encode;

/// Objects that are asked about, and then removed, at one time: one by one a large namespace would not be emptied
/// within the time of a request, and its deletion would never end.
const AT_ONCE: usize = 16;

/// DELETE of a collection; answers what was removed.
pub async fn delete_collection(request: &RequestContext, body: &Read) -> Result<Response<Body>, ApiError> {
    let view = request.view()?;
    let list_options = ListOptions::parse(&request.info.query, false)?;
    let read = list_options.read()?;
    selection::scope(request)?;
    let options = delete::options(request, body)?;
    let page = list::read(request, &read).await?;
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
    request.audit.response(|| encode::list_json(&page, &view));
    Ok(encode::list(page, view, &request.headers).await)
}
