//! What a reviewer of tokens remembers, and for whom.

#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::auth::review::limiter::{Rate, ReviewBounds};

const CACHE_LIMITS: CacheLimits =
    CacheLimits { most: 10, fresh: Duration::from_secs(600), kept: Duration::from_secs(600) };

/// A host that knows the tokens of `users`, and how often it was asked.
fn host(users: &'static [&'static str]) -> (Client, Arc<AtomicUsize>) {
    let times = Arc::<AtomicUsize>::default();
    let counted = times.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        counted.fetch_add(1, SeqCst);
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut review: Value = serde_json::from_slice(&body).unwrap();
            let user = review["spec"]["token"].as_str().and_then(|token| token.strip_prefix("token of "));
            let user = user.filter(|user| users.contains(user));
            review["status"] = json!({"authenticated": user.is_some(), "user": {"username": user}});
            Ok::<_, Infallible>(Response::new(Body::from(review.to_string().into_bytes())))
        }
    });
    (Client::new(service, "default"), times)
}

/// A limiter that allows strangers one review in ten minutes.
fn one_stranger() -> Arc<ReviewLimiter> {
    let rate = |burst| Rate { burst, every: Duration::from_secs(600) };
    let users = ReviewBounds {
        in_flight: 9,
        in_flight_per_payer: 9,
        rate: rate(1000),
        rate_per_payer: rate(1000),
        waiting: 9,
        waiting_per_payer: 9,
        joined: 9,
        joined_per_payer: 9,
    };
    Arc::new(
        ReviewLimiter::default()
            .bounded(users, ReviewBounds { rate: rate(1), rate_per_payer: rate(1), ..users }),
    )
}

fn origin(last: u8) -> Origin {
    let address = Some(Ipv4Addr::new(10, 0, 0, last).into());
    Origin { address, ..Origin::local(Duration::from_millis(4)) }
}

#[tokio::test]
async fn unknown_tokens_do_not_push_out_known_ones() {
    let (client, times) = host(&["ann"]);
    let reviewer = TokenReviewer::remembering(CACHE_LIMITS, CACHE_LIMITS, client, Arc::default());
    reviewer.review("token of ann", &origin(1)).await.unwrap();
    let patient = Origin::local(Duration::from_secs(600));
    for i in 0..20 {
        assert_eq!(reviewer.review(&format!("junk {i}"), &patient).await.unwrap_err().code(), 401);
    }
    assert_eq!(times.load(SeqCst), 21);
    assert_eq!(reviewer.review("token of ann", &origin(1)).await.unwrap().name, "ann");
    assert_eq!(reviewer.review("junk 19", &origin(1)).await.unwrap_err().code(), 401);
    assert_eq!(times.load(SeqCst), 21);
}

#[tokio::test]
async fn good_tokens_cost_nothing_of_what_strangers_may_ask() {
    let (client, _) = host(&["ann", "bob"]);
    let reviewer = TokenReviewer::new(client, one_stranger());
    reviewer.review("token of ann", &origin(1)).await.unwrap();
    reviewer.review("token of bob", &origin(1)).await.unwrap();
    assert_eq!(reviewer.review("junk", &origin(2)).await.unwrap_err().code(), 401);
    let refused = reviewer.review("more junk", &origin(2)).await.unwrap_err();
    assert_eq!((refused.code(), refused.retry_after()), (429, Some(1)));
}

/// After 10 s a token is asked about again, and strangers may use up all their permits at that moment.
#[tokio::test]
async fn a_token_that_was_good_is_asked_about_in_its_users_name() {
    let (client, times) = host(&["ann"]);
    let forgetful = CacheLimits { fresh: Duration::ZERO, ..CACHE_LIMITS };
    let reviewer = TokenReviewer::remembering(forgetful, CACHE_LIMITS, client, one_stranger());
    reviewer.review("token of ann", &origin(1)).await.unwrap();
    assert_eq!(reviewer.review("junk", &origin(1)).await.unwrap_err().code(), 401);
    assert_eq!(reviewer.review("more junk", &origin(1)).await.unwrap_err().code(), 429);
    assert_eq!(reviewer.review("token of ann", &origin(1)).await.unwrap().name, "ann");
    assert_eq!(times.load(SeqCst), 3);
}

/// Returns the user of a token for the audiences `theirs`, and the audiences that the host was asked for.
async fn user_of(ours: &[&str], theirs: Option<&'static [&'static str]>) -> (Result<String, u16>, Value) {
    let asked = Arc::new(Mutex::new(Value::Null));
    let seen = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let seen = seen.clone();
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut review: Value = serde_json::from_slice(&body).unwrap();
            *seen.lock() = review["spec"]["audiences"].clone();
            review["status"] =
                json!({"authenticated": true, "user": {"username": "ann"}, "audiences": theirs});
            Ok::<_, Infallible>(Response::new(Body::from(review.to_string().into_bytes())))
        }
    });
    let reviewer = TokenReviewer::new(Client::new(service, "default"), Arc::default());
    let reviewer = reviewer.for_audiences(ours.iter().map(|&it| it.to_owned()).collect());
    let answer = reviewer.review("token", &Origin::local(Duration::from_secs(600))).await;
    let asked = asked.lock().clone();
    (answer.map(|user| user.name.clone()).map_err(|error| error.code()), asked)
}

#[tokio::test]
async fn without_audiences_a_token_is_for_the_host() {
    for theirs in [None, Some(&["host"][..])] {
        let (user, asked) = user_of(&[], theirs).await;
        assert_eq!((user, asked), (Ok("ann".to_owned()), Value::Null), "{theirs:?}");
    }
}

/// A host that says nothing of audiences has looked for its own: such a token was not meant for us.
#[tokio::test]
async fn with_audiences_a_token_must_be_for_one_of_them() {
    for (theirs, expected) in [
        (Some(&["b", "c"][..]), Ok("ann".to_owned())),
        (Some(&["host"]), Err(401)),
        (Some(&[]), Err(401)),
        (None, Err(401)),
    ] {
        let (user, asked) = user_of(&["a", "b"], theirs).await;
        assert_eq!((user, asked), (expected, json!(["a", "b"])), "{theirs:?}");
    }
}

/// What is remembered of a token, and whether the host could be asked at all, are different things.
#[tokio::test]
async fn a_host_that_cannot_be_asked_says_nothing_of_a_token() {
    let service = tower::service_fn(|_: Request<Body>| async {
        let refused = Response::builder().status(403).body(Body::empty());
        Ok::<_, Infallible>(refused.unwrap())
    });
    let reviewer = TokenReviewer::new(Client::new(service, "default"), Arc::default());
    let patient = Origin::local(Duration::from_secs(600));
    let unanswered = reviewer.owner("token", &patient).await.unwrap_err();
    assert_eq!(unanswered.code(), 401);
    assert!(matches!(unanswered, AuthenticationError::NoAnswer));
    let reviewer = TokenReviewer::new(host(&["ann"]).0, Arc::default());
    assert!(reviewer.owner("junk", &patient).await.unwrap().is_none());
    assert!(reviewer.owner("token of ann", &patient).await.unwrap().is_some());
    assert!(reviewer.known_until("token of ann") > Instant::now());
}

/// A user without a name was in `system:authenticated`, with all that the group may do.
#[tokio::test]
async fn a_token_whose_user_the_host_does_not_name_is_nobodys() {
    for user in [json!(null), json!({}), json!({"username": "", "groups": ["system:masters"]})] {
        let status = json!({"status": {"authenticated": true, "user": user}}).to_string().into_bytes();
        let service = tower::service_fn(move |_: Request<Body>| {
            let answer = Response::new(Body::from(status.clone()));
            async { Ok::<_, Infallible>(answer) }
        });
        let reviewer = TokenReviewer::new(Client::new(service, "default"), Arc::default());
        let owner = reviewer.owner("token", &Origin::local(Duration::from_secs(600))).await;
        assert!(owner.unwrap().is_none());
    }
}

/// A webhook or a proxy in front of the host may repeat what it refuses.
#[tokio::test(start_paused = true)]
async fn the_log_shows_no_text_of_a_failed_review_of_a_token() {
    let status =
        json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no review of secret"});
    for (code, body, expected) in [
        (403, status.to_string(), "403 Forbidden"),
        (403, "secret".to_owned(), "403 Unknown"),
        (200, "\"secret\"".to_owned(), "the answer is not a TokenReview"),
    ] {
        let service = tower::service_fn(move |_: Request<Body>| {
            let answer = Response::builder().status(code).body(Body::from(body.clone().into_bytes()));
            async { Ok::<_, Infallible>(answer.unwrap()) }
        });
        let (log, _guard) = drydock_logging::testing::log("debug");
        let reviewer = TokenReviewer::new(Client::new(service, "default"), Arc::default());
        let origin = Origin::local(Duration::from_secs(600));
        assert!(reviewer.owner("secret", &origin).await.is_err());
        let text = log.lines().concat();
        assert!(text.contains(expected) && !text.contains("secret"), "{text}");
    }
}
