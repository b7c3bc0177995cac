//! /livez, /readyz and /healthz (k8s.io/apiserver pkg/server/healthz): named checks, `?verbose`, `?exclude=`, and a
//! path for each check. A failure is 500. These three need no authentication, so they withhold the reason; the path
//! of a check below them shows it to users that the host authorizes to get that path. A check that begins to fail is
//! logged, and so is one that passes again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use http::{Method, Response, StatusCode, header};

use crate::request::info::PROBE_PATHS;
use crate::request::query::Query;

/// A check, which returns the reason if it fails.
pub type HealthCheck = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Returns something that a reader of /readyz should know although it is no reason to stop sending traffic here.
pub type Notice = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// The named checks of the three endpoints.
#[derive(Clone, Default)]
pub struct Health {
    live: Vec<Named>,
    ready: Vec<Named>,
    notices: Vec<(&'static str, Notice)>,
}

/// A check, and whether it failed when it last ran.
#[derive(Clone)]
struct Named {
    name: &'static str,
    check: HealthCheck,
    fails: Arc<AtomicBool>,
}

impl Health {
    /// Adds a check to all three endpoints. Its failure means that a restart helps.
    #[must_use]
    pub fn live(mut self, name: &'static str, check: HealthCheck) -> Self {
        self.live.push(Named::new(name, check));
        self
    }

    /// Adds a check to /readyz alone. Its failure means that no traffic should be sent here.
    #[must_use]
    pub fn ready(mut self, name: &'static str, check: HealthCheck) -> Self {
        self.ready.push(Named::new(name, check));
        self
    }

    /// Adds a line to /readyz?verbose that never makes /readyz fail, and a path below /readyz that fails with the
    /// text of the notice while there is one.
    #[must_use]
    pub fn notice(mut self, name: &'static str, notice: Notice) -> Self {
        self.notices.push((name, notice));
        self
    }

    /// The answer to a GET of exactly /livez, /readyz or /healthz, which needs no authentication.
    pub fn probe(&self, method: &Method, path: &str, query: &Query) -> Option<Response<Body>> {
        let is_probe = *method == Method::GET && PROBE_PATHS.contains(&path);
        is_probe.then(|| self.answer(path, query)).flatten()
    }

    /// Whether every check of /readyz passes.
    pub fn is_ready(&self) -> bool {
        // Every check runs, so that the log names all that fail.
        self.live.iter().chain(&self.ready).filter(|check| check.look().is_err()).count() == 0
    }

    /// The answer to a health path, `None` for any other path. The paths below the three endpoints show the reasons
    /// of failures.
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
                Some(self.noticed(name).unwrap_or_else(|| one(&checks, name)))
            }
            Some(name) => Some(one(&checks, name)),
        }
    }

    /// The answer to a notice's own path, which fails while the notice has something to say.
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

impl Named {
    fn new(name: &'static str, check: HealthCheck) -> Self {
        Self { name, check, fails: Arc::default() }
    }

    /// Runs the check. Logs when it begins to fail, and when it passes again.
    fn look(&self) -> Result<(), String> {
        let outcome = (self.check)();
        let failed = self.fails.swap(outcome.is_err(), Ordering::Relaxed);
        match &outcome {
            Err(why) if !failed => tracing::warn!(check = self.name, why, "a health check fails"),
            Ok(()) if failed => tracing::info!(check = self.name, "a health check passes again"),
            _ => {}
        }
        outcome
    }
}

fn all(
    endpoint: &str,
    checks: &[&Named],
    notices: &[(&'static str, Notice)],
    query: &Query,
) -> Response<Body> {
    let mut text = String::new();
    let mut failed = Vec::new();
    for check in checks {
        let name = check.name;
        if query.all("exclude").any(|e| e == name) {
            text.push_str(&format!("[+]{name} excluded: ok\n"));
            continue;
        }
        match check.look() {
            Ok(()) => text.push_str(&format!("[+]{name} ok\n")),
            Err(_) => {
                text.push_str(&format!("[-]{name} failed: reason withheld\n"));
                failed.push(name);
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
            Some(_) => format!("[!]{name}: reason withheld\n"),
        });
    }
    match (failed.is_empty(), query.get("verbose").is_some()) {
        (true, false) => plain(StatusCode::OK, "ok".to_owned()),
        (true, true) => plain(StatusCode::OK, format!("{text}{endpoint} check passed\n")),
        (false, _) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{text}{endpoint} check failed\n")),
    }
}

fn one(checks: &[&Named], name: &str) -> Response<Body> {
    let Some(check) = checks.iter().find(|check| check.name == name) else {
        return plain(StatusCode::NOT_FOUND, "404 page not found\n".to_owned());
    };
    match check.look() {
        Ok(()) => plain(StatusCode::OK, "ok".to_owned()),
        Err(why) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {why}\n")),
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
