//! /livez, /readyz and /healthz (k8s.io/apiserver pkg/server/healthz): named checks, `?verbose`, `?exclude=`, a path a
//! check; a failure is 500 and its reason goes to the log only.

use std::sync::Arc;

use axum::body::Body;
use http::{Response, StatusCode, header};

use crate::query::Query;

/// A check: healthy, or why not.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Something that whoever looks at /readyz should know, though it is no reason to send no traffic here.
pub type Notice = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// The named checks of the three endpoints.
#[derive(Clone, Default)]
pub struct Health {
    live: Vec<(&'static str, Check)>,
    ready: Vec<(&'static str, Check)>,
    notices: Vec<(&'static str, Notice)>,
}

impl Health {
    /// A check of all three endpoints: when it fails, a restart helps.
    #[must_use]
    pub fn live(mut self, name: &'static str, check: Check) -> Self {
        self.live.push((name, check));
        self
    }

    /// A check of /readyz alone: when it fails, send no traffic here.
    #[must_use]
    pub fn ready(mut self, name: &'static str, check: Check) -> Self {
        self.ready.push((name, check));
        self
    }

    /// A line of /readyz?verbose that never fails it, and a path of its own below /readyz that does fail.
    #[must_use]
    pub fn notice(mut self, name: &'static str, notice: Notice) -> Self {
        self.notices.push((name, notice));
        self
    }

    /// The answer to a health path, `None` for any other path.
    pub fn answer(&self, path: &str, query: &Query) -> Option<Response<Body>> {
        let mut parts = path.trim_start_matches('/').splitn(2, '/');
        let endpoint = parts.next()?;
        let checks: Vec<_> = match endpoint {
            "livez" | "healthz" => self.live.iter().collect(),
            "readyz" => self.live.iter().chain(&self.ready).collect(),
            _ => return None,
        };
        match parts.next() {
            None | Some("") if endpoint == "readyz" => Some(all(endpoint, &checks, &self.notices, query)),
            None | Some("") => Some(all(endpoint, &checks, &[], query)),
            Some(name) if endpoint == "readyz" => {
                Some(self.noticed(name).unwrap_or_else(|| one(endpoint, &checks, name)))
            }
            Some(name) => Some(one(endpoint, &checks, name)),
        }
    }

    /// The answer to a notice's own path, which fails while there is something to say: for whoever asks for just that.
    fn noticed(&self, name: &str) -> Option<Response<Body>> {
        let (_, notice) = self.notices.iter().find(|notice| notice.0 == name)?;
        Some(match notice() {
            None => plain(StatusCode::OK, "ok".to_owned()),
            Some(said) => {
                plain(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {said}\n"))
            }
        })
    }
}

fn all(
    endpoint: &str,
    checks: &[&(&'static str, Check)],
    notices: &[(&'static str, Notice)],
    query: &Query,
) -> Response<Body> {
    let mut text = String::new();
    let mut failed = Vec::new();
    for (name, check) in checks.iter().map(|c| (&c.0, &c.1)) {
        if query.all("exclude").any(|e| e == *name) {
            text.push_str(&format!("[+]{name} excluded: ok\n"));
            continue;
        }
        match check() {
            Ok(()) => text.push_str(&format!("[+]{name} ok\n")),
            Err(why) => {
                tracing::info!(endpoint, check = *name, why, "health check failed");
                text.push_str(&format!("[-]{name} failed: reason withheld\n"));
                failed.push(*name);
            }
        }
    }
    for (name, notice) in notices {
        if query.all("exclude").any(|e| e == *name) {
            text.push_str(&format!("[+]{name} excluded: ok\n"));
            continue;
        }
        text.push_str(&match notice() {
            None => format!("[+]{name} ok\n"),
            Some(said) => format!("[!]{name}: {said}\n"),
        });
    }
    match (failed.is_empty(), query.get("verbose").is_some()) {
        (true, false) => plain(StatusCode::OK, "ok".to_owned()),
        (true, true) => plain(StatusCode::OK, format!("{text}{endpoint} check passed\n")),
        (false, _) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{text}{endpoint} check failed\n")),
    }
}

fn one(endpoint: &str, checks: &[&(&'static str, Check)], name: &str) -> Response<Body> {
    let Some((name, check)) = checks.iter().find(|c| c.0 == name).map(|c| (&c.0, &c.1)) else {
        return plain(StatusCode::NOT_FOUND, "404 page not found\n".to_owned());
    };
    match check() {
        Ok(()) => plain(StatusCode::OK, "ok".to_owned()),
        Err(why) => {
            tracing::info!(endpoint, check = *name, why, "health check failed");
            plain(StatusCode::INTERNAL_SERVER_ERROR, "internal server error: reason withheld\n".to_owned())
        }
    }
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("x-content-type-options", header::HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
