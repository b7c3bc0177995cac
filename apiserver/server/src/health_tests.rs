//! What probes are answered.

use super::*;

fn health(storage: Result<(), String>) -> Health {
    Health::default().live("ping", Arc::new(|| Ok(()))).ready("storage", Arc::new(move || storage.clone()))
}

fn status(health: &Health, path: &str, query: &str) -> Option<StatusCode> {
    health.answer(path, &Query::parse(query)).map(|r| r.status())
}

#[test]
fn readiness_fails_alone_when_storage_does() {
    let health = health(Err("gone".into()));
    assert_eq!(status(&health, "/livez", ""), Some(StatusCode::OK));
    assert_eq!(status(&health, "/readyz", ""), Some(StatusCode::INTERNAL_SERVER_ERROR));
}

#[test]
fn an_excluded_check_does_not_fail_the_endpoint() {
    let health = health(Err("gone".into()));
    assert_eq!(status(&health, "/readyz", "exclude=storage"), Some(StatusCode::OK));
}

#[test]
fn a_check_has_a_path_of_its_own() {
    let health = health(Err("gone".into()));
    assert_eq!(status(&health, "/readyz/ping", ""), Some(StatusCode::OK));
    assert_eq!(status(&health, "/readyz/storage", ""), Some(StatusCode::INTERNAL_SERVER_ERROR));
    assert_eq!(status(&health, "/readyz/unheard-of", ""), Some(StatusCode::NOT_FOUND));
}

#[test]
fn other_paths_are_not_answered_here() {
    assert_eq!(status(&health(Ok(())), "/apis", ""), None);
}
