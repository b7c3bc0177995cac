//! Paths for probes and scrapers.

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

/// What the probes ask. Both must answer at once.
#[derive(Clone)]
pub struct Health {
    /// Whether the process is worth keeping; `Err` says why not.
    pub live: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Whether the process does its work, or stands by for it; `Err` says why not.
    pub ready: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

#[derive(Clone)]
struct Serving {
    metrics: Metrics,
    health: Health,
    gate: Gate,
}

/// `/healthz`, `/livez` and `/readyz` for everybody, `/metrics` for whom `gate` lets through.
pub fn router(metrics: Metrics, health: Health, gate: Gate) -> Router {
    Router::new()
        .route("/healthz", get(live))
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(scrape))
        .with_state(Serving { metrics, health, gate })
}

async fn live(State(serving): State<Serving>) -> Response {
    answer((serving.health.live)())
}

async fn ready(State(serving): State<Serving>) -> Response {
    answer((serving.health.ready)())
}

async fn scrape(State(serving): State<Serving>, headers: HeaderMap) -> Response {
    match (serving.gate)(headers).await {
        Ok(()) => ([(header::CONTENT_TYPE, TEXT_FORMAT)], serving.metrics.render()).into_response(),
        Err(status) => (status, format!("{status}\n")).into_response(),
    }
}

fn answer(health: Result<(), String>) -> Response {
    match health {
        Ok(()) => "ok".into_response(),
        Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")).into_response(),
    }
}
