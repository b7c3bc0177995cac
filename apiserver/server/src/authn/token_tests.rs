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
use crate::review::turns::{Bounds, Pace};

const ROOM: CacheLimits =
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

/// One start within ten minutes is a stranger's.
fn one_stranger() -> Arc<Turns> {
    let pace = |burst| Pace { burst, every: Duration::from_secs(600) };
    let users = Bounds {
        in_flight: 9,
        in_flight_per_lane: 9,
        pace: pace(1000),
        pace_per_lane: pace(1000),
        waiting: 9,
        waiting_per_lane: 9,
        joined: 9,
        joined_per_lane: 9,
    };
    Arc::new(Turns::default().bounded(users, Bounds { pace: pace(1), pace_per_lane: pace(1), ..users }))
}

fn origin(last: u8) -> Origin {
    let address = Some(Ipv4Addr::new(10, 0, 0, last).into());
    Origin { address, ..Origin::local(Duration::from_millis(4)) }
}

#[tokio::test]
async fn unknown_tokens_do_not_push_out_known_ones() {
    let (client, times) = host(&["ann"]);
    let reviewer = TokenReviewer::remembering(ROOM, ROOM, client, Arc::default());
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

/// After 10 s a token is asked about again, and strangers may use up all their turns at that moment.
#[tokio::test]
async fn a_token_that_was_good_is_asked_about_in_its_users_name() {
    let (client, times) = host(&["ann"]);
    let forgetful = CacheLimits { fresh: Duration::ZERO, ..ROOM };
    let reviewer = TokenReviewer::remembering(forgetful, ROOM, client, one_stranger());
    reviewer.review("token of ann", &origin(1)).await.unwrap();
    assert_eq!(reviewer.review("junk", &origin(1)).await.unwrap_err().code(), 401);
    assert_eq!(reviewer.review("more junk", &origin(1)).await.unwrap_err().code(), 429);
    assert_eq!(reviewer.review("token of ann", &origin(1)).await.unwrap().name, "ann");
    assert_eq!(times.load(SeqCst), 3);
}
