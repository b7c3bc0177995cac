//! What an authorizer takes from the host, and for whom it remembers it.

#![allow(clippy::unwrap_used)]
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube::client::Body;

use super::*;
use crate::auth::caller::Origin;

fn caller(name: &str) -> Caller {
    let user = User { name: name.to_owned(), ..User::default() };
    Caller::new(Arc::new(user), Origin::local(Duration::from_secs(600)))
}

/// Any writer pushed everybody's answers out by asking about 8,192 names within 10 s.
#[tokio::test]
async fn one_callers_names_do_not_push_out_anothers() {
    let times = Arc::<AtomicUsize>::default();
    let counted = times.clone();
    let service = tower::service_fn(move |_: Request<Body>| {
        counted.fetch_add(1, SeqCst);
        let answer = Body::from(br#"{"status":{"allowed":true}}"#.to_vec());
        async { Ok::<_, Infallible>(Response::new(answer)) }
    });
    let room = CacheLimits { most: 10, fresh: Duration::from_secs(600), kept: Duration::from_secs(600) };
    let authorizer = Authorizer::remembering(room, Client::new(service, "default"), Arc::default());
    let (ann, bob) = (caller("ann"), caller("bob"));
    let about = |name: String| AuthorizationAttributes {
        resource: "things".into(),
        name,
        ..AuthorizationAttributes::default()
    };
    let mine = about("mine".into());
    authorizer.require(&ann, &ann.user, &mine).await.unwrap();
    for i in 0..100 {
        // Half of them are about ann, as whom bob acts: they are bob's.
        let user = if i % 2 == 0 { &ann.user } else { &bob.user };
        authorizer.require(&bob, user, &about(format!("{i}"))).await.unwrap();
    }
    authorizer.require(&ann, &ann.user, &mine).await.unwrap();
    assert_eq!(times.load(SeqCst), 101);
}

/// A host that denies everything and gives this reason, in pieces; and how many bytes of it were read.
fn denying(reason: String) -> (Client, Arc<AtomicUsize>) {
    let read = Arc::<AtomicUsize>::default();
    let counted = read.clone();
    let answer = serde_json::json!({"status": {"allowed": false, "reason": reason}}).to_string();
    let answer = Bytes::from(answer);
    let service = tower::service_fn(move |_: Request<Body>| {
        let (counted, mut left) = (counted.clone(), answer.clone());
        let pieces = std::iter::from_fn(move || {
            let piece = left.split_to(left.len().min(4096));
            counted.fetch_add(piece.len(), SeqCst);
            (!piece.is_empty()).then(|| Ok::<_, Infallible>(Frame::data(piece)))
        });
        let body = StreamBody::new(futures::stream::iter(pieces));
        async { Ok::<_, Infallible>(Response::new(body)) }
    });
    (Client::new(service, "default"), read)
}

/// The host names every RoleBinding of the namespace whose role is gone, and a tenant makes as many as they like.
#[tokio::test]
async fn a_reason_is_cut() {
    let (client, _) = denying("é".repeat(20_000));
    let (authorizer, ann) = (Authorizer::new(client, Arc::default()), caller("ann"));
    let decision = authorizer.authorize(&ann, &ann.user, &AuthorizationAttributes::default()).await.unwrap();
    assert!(!decision.allowed && decision.reason.starts_with("éé"));
    assert!(decision.reason.len() < 1100 && decision.reason.capacity() < 1100, "{}", decision.reason.len());
}

#[tokio::test]
async fn a_longer_answer_is_not_read_and_allows_nothing() {
    let (client, read) = denying("x".repeat(10_000_000));
    let (authorizer, ann) = (Authorizer::new(client, Arc::default()), caller("ann"));
    let decision = authorizer.authorize(&ann, &ann.user, &AuthorizationAttributes::default()).await.unwrap();
    assert!(!decision.allowed && decision.reason.len() < 1100, "{}", decision.reason.len());
    assert!(read.load(SeqCst) < 100_000, "{read:?} bytes were read");
}
