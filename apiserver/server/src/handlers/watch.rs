//! A stream of changes.

use std::time::Duration;

use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_serving::clock;
use drydock_serving::wire::negotiate;
use drydock_storage::storage::WatchFrom;
use http::Response;
use rand::RngExt;

use super::context::RequestContext;
use super::selection;
use crate::request::list_options::ListOptions;
use crate::watch::{self, WatchOptions};
use crate::wire::object::ObjectView;

/// Shortest time of a watch that asks for none; the longest is twice that (kube-apiserver --min-request-timeout).
const MIN_TIMEOUT: Duration = Duration::from_secs(1800);

/// GET with `watch`.
pub async fn watch(request: &RequestContext) -> Result<Response<Body>, ApiError> {
    let output = negotiate::stream(&request.headers, &request.info.query)?;
    let view =
        ObjectView { output: negotiate::Output { pretty: false, ..output }, ..request.view_as(output)? };
    let options = ListOptions::parse(&request.info.query, true)?;
    let scope = selection::scope(request)?;
    let newest = newest(request, &options).await?;
    let from = options.watch_from(newest)?;
    let initial = matches!(from, WatchFrom::InitialEvents(_));
    let selector = scope.matches.as_ref().map_or(0, |selection| selection.bytes);
    let opened = request.storage().watch(scope, from).await;
    let ends = clock::now() + timeout(&options);
    let watch_options = WatchOptions {
        view,
        clock: jiff::Timestamp::now,
        bookmarks: options.bookmarks,
        ends,
        shutdown: request.shutdown.clone(),
        counts: request.watch_events.clone(),
        recent_frames: request.recent_frames.clone(),
        watcher: match opened {
            Ok(watcher) => Ok(watcher),
            Err(error) => Err(as_event(request, error)?),
        },
        initial,
        selector,
    };
    Ok(watch::response(watch_options))
}

/// Returns the newest revision for a watch that starts at no version and without initial events. Other watches do not
/// need it, and get 0.
async fn newest(
    request: &RequestContext,
    options: &ListOptions,
) -> Result<drydock_storage::backend::Revision, ApiError> {
    let named = !matches!(options.resource_version.as_str(), "" | "0");
    if named || options.send_initial_events == Some(true) {
        return Ok(drydock_storage::backend::Revision::default());
    }
    request.storage().current_revision().await.map_err(|e| request.storage_error(e, "watch"))
}

/// A version that is too old is an event of the stream; any other error is the response.
fn as_event(
    request: &RequestContext,
    error: drydock_storage::storage::StorageError,
) -> Result<ApiError, ApiError> {
    let error = request.storage_error(error, "watch");
    if error.code() == 410 { Ok(error) } else { Err(error) }
}

fn timeout(options: &ListOptions) -> Duration {
    if options.timeout_seconds > 0 {
        return Duration::from_secs(options.timeout_seconds.min(7 * 24 * 3600));
    }
    MIN_TIMEOUT.mul_f64(1.0 + rand::rng().random::<f64>())
}
