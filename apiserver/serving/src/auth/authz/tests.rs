//! What an authorizer takes from the host, and for whom it remembers it.

#![allow(clippy::unwrap_used)]
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
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

/// A host that allows what `allows` says of the namespace and name asked about, and what it was asked about.
fn host(allows: fn(&str, &str) -> bool) -> (Authorizer, Arc<Mutex<Vec<[String; 2]>>>) {
    let asked = Arc::<Mutex<Vec<[String; 2]>>>::default();
    let told = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let told = told.clone();
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let review: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let about = &review["spec"]["resourceAttributes"];
            let [namespace, name] =
                ["namespace", "name"].map(|field| about[field].as_str().unwrap_or_default().to_owned());
            let answer = serde_json::json!({"status": {"allowed": allows(&namespace, &name)}}).to_string();
            told.lock().push([namespace, name]);
            Ok::<_, Infallible>(Response::new(Body::from(answer.into_bytes())))
        }
    });
    let authorizer = Authorizer::new(Client::new(service, "default"), Arc::default());
    (authorizer.asking_in_general(|user| user.name == "controller"), asked)
}

fn thing(namespace: &str, name: &str) -> AuthorizationAttributes {
    let [resource, namespace, name] = ["things", namespace, name].map(str::to_owned);
    AuthorizationAttributes { resource, namespace, name, ..AuthorizationAttributes::default() }
}

/// A drain of 600 pods in 200 namespaces cost a review for each pod, and one for each namespace and verb.
#[tokio::test]
async fn a_controller_with_rights_everywhere_costs_one_review_for_all_objects() {
    let (authorizer, asked) = host(|_, _| true);
    let [controller, ann] = ["controller", "ann"].map(caller);
    for i in 0..600 {
        let about = thing(&format!("ns-{}", i % 200), &format!("{i}"));
        assert!(authorizer.authorize(&controller, &controller.user, &about).await.unwrap().allowed);
    }
    assert_eq!(*asked.lock(), [["", ""].map(str::to_owned)]);
    for i in 0..3 {
        authorizer.require(&ann, &ann.user, &thing("ns", &format!("{i}"))).await.unwrap();
    }
    let by_name = ["0", "1", "2"].map(|name| ["ns", name].map(str::to_owned));
    assert_eq!(asked.lock()[1..], by_name, "anybody else is asked about by name");
}

#[tokio::test]
async fn a_right_to_one_namespace_or_one_name_is_found_and_no_other() {
    let (authorizer, asked) = host(|namespace, name| namespace == "mine" || name == "own");
    let controller = caller("controller");
    for (about, allowed, reviews) in [
        (thing("mine", "a"), true, &[["", ""], ["mine", ""]][..]),
        (thing("mine", "b"), true, &[]),
        (thing("other", "own"), true, &[["other", ""], ["other", "own"]]),
        (thing("other", "a"), false, &[["other", "a"]]),
        (thing("", "a"), false, &[["", "a"]]),
        (thing("", "own"), true, &[["", "own"]]),
        (thing("", ""), false, &[]),
    ] {
        asked.lock().clear();
        let decision = authorizer.authorize(&controller, &controller.user, &about).await.unwrap();
        assert_eq!(decision.allowed, allowed, "{about:?}");
        assert_eq!(*asked.lock(), reviews, "{about:?}");
    }
    let path = AuthorizationAttributes { path: "/metrics".into(), ..AuthorizationAttributes::default() };
    asked.lock().clear();
    authorizer.authorize(&controller, &controller.user, &path).await.unwrap();
    assert_eq!(asked.lock().len(), 1, "a path has nothing wider");
}

#[tokio::test]
async fn an_answer_in_general_is_remembered_for_each_object() {
    let (authorizer, _) = host(|_, _| true);
    let controller = caller("controller");
    authorizer.require(&controller, &controller.user, &thing("ns", "a")).await.unwrap();
    let known = authorizer.known_until(&controller.user, &thing("ns", "a"));
    assert_eq!(known, authorizer.known_until(&controller.user, &thing("other", "b")));
}
