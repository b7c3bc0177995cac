//! Tests of the answers to probes.

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

#[tokio::test]
async fn a_notice_is_read_and_fails_nothing() {
    let said = Arc::new(|| Some("no space left".to_owned()));
    let health = health(Ok(())).notice("storage-writes", said);
    assert_eq!(status(&health, "/readyz", ""), Some(StatusCode::OK));
    let answer = health.answer("/readyz", &Query::parse("verbose")).map(|answer| answer.into_body());
    let text = http_body_util::BodyExt::collect(answer.unwrap_or_default()).await.map(|body| body.to_bytes());
    let text = String::from_utf8(text.unwrap_or_default().to_vec()).unwrap_or_default();
    assert!(text.contains("[!]storage-writes: reason withheld\n"), "{text}");
    assert!(!text.contains("storage-writes ok"), "{text}");
    let query = Query::parse("verbose&exclude=storage-writes");
    let answer = health.answer("/readyz", &query).map(|answer| answer.into_body());
    let text = http_body_util::BodyExt::collect(answer.unwrap_or_default()).await.map(|body| body.to_bytes());
    let text = String::from_utf8(text.unwrap_or_default().to_vec()).unwrap_or_default();
    assert!(text.contains("[+]storage-writes excluded: ok\n") && !text.contains("no space"), "{text}");
    assert_eq!(status(&health, "/readyz/storage-writes", ""), Some(StatusCode::INTERNAL_SERVER_ERROR));
    assert_eq!(status(&health, "/livez/storage-writes", ""), Some(StatusCode::NOT_FOUND));
    assert_eq!(status(&health, "/livez", "verbose"), Some(StatusCode::OK));
}

/// Regression: `?verbose` showed every client the address of etcd and its error.
#[tokio::test]
async fn reasons_are_told_on_the_paths_that_need_authorization_alone() {
    let refused = || "connect to 10.1.2.3:2379: refused".to_owned();
    let fails: HealthCheck = Arc::new(move || Err(refused()));
    let health = Health::default()
        .live("workers", fails.clone())
        .ready("storage", fails)
        .notice("storage-writes", Arc::new(move || Some(refused())));
    let text = async |path: &str, query: &str| {
        let body = health.answer(path, &Query::parse(query)).map(|answer| answer.into_body());
        let bytes = http_body_util::BodyExt::collect(body.unwrap_or_default()).await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    };
    for path in ["/livez", "/readyz", "/healthz"] {
        for query in ["", "verbose", "verbose&exclude=workers"] {
            let said = text(path, query).await;
            assert!(!said.contains("10.1.2.3"), "{path}?{query}: {said}");
        }
    }
    assert!(text("/readyz", "verbose").await.contains("[-]storage failed: reason withheld\n"));
    for path in ["/livez/workers", "/readyz/storage", "/readyz/storage-writes"] {
        assert_eq!(
            text(path, "").await,
            "internal server error: connect to 10.1.2.3:2379: refused\n",
            "{path}"
        );
    }
}
