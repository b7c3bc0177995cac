//! The path for scrapers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::Metrics;

/// Content type of the text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Who may read `/metrics`: given the request's headers, `Ok` or the status to answer with.
pub type Gate = Arc<
    dyn Fn(HeaderMap) -> Pin<Box<dyn Future<Output = Result<(), StatusCode>> + Send>> + Send + Sync + 'static,
>;

#[derive(Clone)]
struct Serving {
    metrics: Metrics,
    gate: Gate,
}

/// `/metrics` for whom `gate` lets through.
pub fn router(metrics: Metrics, gate: Gate) -> Router {
    Router::new().route("/metrics", get(scrape)).with_state(Serving { metrics, gate })
}

async fn scrape(State(serving): State<Serving>, headers: HeaderMap) -> Response {
    match (serving.gate)(headers).await {
        Ok(()) => ([(header::CONTENT_TYPE, TEXT_FORMAT)], serving.metrics.render()).into_response(),
        Err(status) => (status, format!("{status}\n")).into_response(),
    }
}
