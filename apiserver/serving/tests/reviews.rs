//! Reviews of tokens and of access: shared while they are in flight, remembered apart for each caller.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use drydock_serving::auth::authn::TokenReviewer;
use drydock_serving::auth::authz::{AuthorizationAttributes, Authorizer};
use drydock_serving::auth::review::ReviewLimiter;
use drydock_serving::auth::{Caller, Origin};
use drydock_serving::clock::testing::StoppedClock;
use drydock_serving::request::user::User;
use futures::FutureExt;
use futures::future::join_all;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

/// A host that is asked.
#[derive(Clone)]
struct Host {
    asked: Arc<Mutex<Vec<Value>>>,
    arrived: watch::Sender<usize>,
    answers: Arc<Semaphore>,
    refuses: Arc<AtomicBool>,
}

impl Host {
    /// One that gives so many answers.
    fn answering(answers: usize) -> Self {
        let (asked, refuses, arrived) = (Arc::default(), Arc::default(), watch::channel(0).0);
        Self { asked, arrived, answers: Arc::new(Semaphore::new(answers)), refuses }
    }

    fn client(&self) -> Client {
        let host = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| host.clone().answer(request));
        Client::new(service, "default")
    }

    fn authorizer(&self) -> Authorizer {
        Authorizer::new(self.client(), Arc::new(ReviewLimiter::default()))
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, std::convert::Infallible> {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let mut review: Value = serde_json::from_slice(&body).unwrap();
        self.asked.lock().push(review["spec"].clone());
        self.arrived.send_modify(|number| *number += 1);
        self.answers.acquire().await.unwrap().forget();
        if self.refuses.load(SeqCst) {
            return Ok(Response::builder().status(403).body(Body::empty()).unwrap());
        }
        let token = review["spec"]["token"].as_str().unwrap_or_default();
        let user = token.strip_prefix("token of ");
        review["status"] = json!({
            "allowed": true, "reason": "by rule", "authenticated": user.is_some(), "user": {"username": user},
        });
        Ok(Response::new(Body::from(review.to_string().into_bytes())))
    }

    async fn has_been_asked(&self, times: usize) {
        self.arrived.subscribe().wait_for(|number| *number >= times).await.unwrap();
    }

    fn times(&self) -> usize {
        self.asked.lock().len()
    }
}

fn origin() -> Origin {
    Origin::local(Duration::from_secs(60))
}

fn caller(name: &str) -> Caller {
    Caller::new(Arc::new(User { name: name.into(), ..User::default() }), origin())
}

fn about(name: impl Into<String>) -> AuthorizationAttributes {
    AuthorizationAttributes {
        verb: "get".into(),
        resource: "things".into(),
        name: name.into(),
        ..AuthorizationAttributes::default()
    }
}

#[tokio::test]
async fn equal_questions_share_one_review() {
    let host = Host::answering(0);
    let (authorizer, ann, x) = (host.authorizer(), caller("ann"), about("x"));
    let questions = join_all((0..100).map(|_| authorizer.authorize(&ann, &ann.user, &x)));
    host.answers.add_permits(1);
    assert!(questions.await.into_iter().all(|decision| decision.unwrap().allowed));
    assert_eq!(host.times(), 1);
}

#[tokio::test]
async fn equal_tokens_share_one_review() {
    let host = Host::answering(1);
    let (reviewer, origin) =
        (TokenReviewer::new(host.client(), Arc::new(ReviewLimiter::default())), origin());
    let users = join_all((0..100).map(|_| reviewer.review("token of ann", &origin))).await;
    assert!(users.into_iter().all(|user| user.unwrap().name == "ann"));
    assert_eq!(host.times(), 1);
}

#[tokio::test]
async fn a_review_goes_on_when_the_one_who_began_it_has_gone_away() {
    let host = Host::answering(0);
    let (authorizer, ann, x) = (Arc::new(host.authorizer()), caller("ann"), about("x"));
    let mut first = Box::pin(authorizer.authorize(&ann, &ann.user, &x));
    let mut second = Box::pin(authorizer.authorize(&ann, &ann.user, &x));
    assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
    host.has_been_asked(1).await;
    drop(first);
    host.answers.add_permits(1);
    assert!(second.await.unwrap().allowed);
    assert_eq!(host.times(), 1);
}

#[tokio::test]
async fn a_review_without_an_answer_is_not_remembered() {
    let host = Host::answering(2);
    let (authorizer, ann, x) = (host.authorizer(), caller("ann"), about("x"));
    host.refuses.store(true, SeqCst);
    let failed = join_all((0..9).map(|_| authorizer.authorize(&ann, &ann.user, &x))).await;
    assert!(failed.into_iter().all(|decision| decision.unwrap_err().code() == 500));
    host.refuses.store(false, SeqCst);
    assert!(authorizer.authorize(&ann, &ann.user, &x).await.unwrap().allowed);
    assert_eq!(host.times(), 2);
}

/// One user's questions get no answer, and another user's do.
#[tokio::test]
async fn one_callers_reviews_do_not_hold_up_anothers() {
    let host = Host::answering(0);
    let (authorizer, ann, bob) = (Arc::new(host.authorizer()), caller("ann"), caller("bob"));
    let (names, x) = ((0..100).map(|i| about(format!("{i}"))).collect::<Vec<_>>(), about("x"));
    let mut slow = Box::pin(join_all(names.iter().map(|name| authorizer.authorize(&ann, &ann.user, name))));
    assert!((&mut slow).now_or_never().is_none());
    host.has_been_asked(16).await;
    let mut quick = Box::pin(authorizer.authorize(&bob, &bob.user, &x));
    assert!((&mut quick).now_or_never().is_none());
    host.has_been_asked(17).await;
    assert_eq!(host.asked.lock().last().unwrap()["user"], "bob");
    host.answers.add_permits(1000);
    assert!(quick.await.unwrap().allowed && slow.await.iter().all(Result::is_ok));
    let names: BTreeSet<String> = host.asked.lock().iter().map(|asked| asked.to_string()).collect();
    assert_eq!((names.len(), host.times()), (101, 101));
}

/// A tenant caused 2,000 reviews a second, which the host serves before the requests of its own users.
#[tokio::test]
async fn a_users_reviews_have_a_pace_and_a_controllers_have_none() {
    let host = Host::answering(10_000);
    let limiter = Arc::new(ReviewLimiter::new(|user| user.name == "manager"));
    let authorizer = Authorizer::new(host.client(), limiter);
    let (ann, manager) = (caller("ann"), caller("manager"));
    let names: Vec<_> = (0..400).map(|i| about(format!("{i}"))).collect();
    let of_ann = || host.asked.lock().iter().filter(|asked| asked["user"] == "ann").count();
    let clock = StoppedClock::stop();
    let mut all = Box::pin(join_all(names.iter().map(|name| authorizer.authorize(&ann, &ann.user, name))));
    for (passed, expected) in [(Duration::ZERO, 200), (Duration::from_secs(1), 300)] {
        clock.advance(passed).await;
        let until_no_more_come = async {
            while of_ann() < expected {
                tokio::task::yield_now().await;
            }
            for name in &names {
                let name = AuthorizationAttributes { verb: format!("get-{expected}"), ..name.clone() };
                authorizer.authorize(&manager, &manager.user, &name).await.unwrap();
            }
        };
        tokio::select! {
            _ = &mut all => panic!("nothing holds up a user's reviews"),
            () = until_no_more_come => {}
        }
        assert_eq!(of_ann(), expected);
    }
    // A request that cannot wait is refused.
    let hurried = |caller: &Caller| Caller { origin: Origin::local(Duration::ZERO), ..caller.clone() };
    let (hurried_ann, hurried_manager, last) = (hurried(&ann), hurried(&manager), about("last"));
    let refused = authorizer.authorize(&hurried_ann, &ann.user, &last);
    let (refused, ()) = tokio::join!(refused, clock.advance(Duration::ZERO));
    assert!(refused.is_err());
    assert!(authorizer.authorize(&hurried_manager, &manager.user, &last).await.is_ok());
}

/// With one unknown token on all streams of all connections, thousands of requests waited for one review, uncounted.
#[tokio::test]
async fn requests_that_share_a_review_are_bounded() {
    let host = Host::answering(0);
    let (reviewer, origin) =
        (TokenReviewer::new(host.client(), Arc::new(ReviewLimiter::default())), origin());
    let mut first = Box::pin(reviewer.review("token of ann", &origin));
    assert!((&mut first).now_or_never().is_none());
    host.has_been_asked(1).await;
    let mut others: Vec<_> = (0..5_000).map(|_| Box::pin(reviewer.review("token of ann", &origin))).collect();
    let refused: Vec<_> = others.iter_mut().filter_map(|other| other.now_or_never()).collect();
    assert!(refused.len() >= 3_900, "{} wait", others.len() - refused.len());
    assert!(refused.iter().all(|answer| answer.as_ref().is_err_and(|error| error.code() == 429)));
    drop(others);
    let mut another = Box::pin(reviewer.review("token of ann", &origin));
    assert!((&mut another).now_or_never().is_none());
    host.answers.add_permits(1);
    assert_eq!((first.await.unwrap().name.as_str(), host.times()), ("ann", 1));
    assert_eq!(another.await.unwrap().name, "ann");
}

/// All service accounts of a namespace are one caller.
#[tokio::test]
async fn a_tenant_with_many_accounts_has_no_more_reviews_in_flight_than_one() {
    let host = Host::answering(0);
    let authorizer = Arc::new(host.authorizer());
    let accounts: Vec<Caller> = (0..100)
        .map(|i| {
            let name = format!("system:serviceaccount:shop:robot-{i}");
            let groups = vec!["system:serviceaccounts".to_owned(), "system:serviceaccounts:shop".to_owned()];
            Caller::new(Arc::new(User { name, groups, ..User::default() }), origin())
        })
        .collect();
    let x = about("x");
    let mut all = Box::pin(join_all(accounts.iter().map(|one| authorizer.authorize(one, &one.user, &x))));
    assert!((&mut all).now_or_never().is_none());
    host.has_been_asked(16).await;
    host.answers.add_permits(1);
    tokio::select! {
        _ = &mut all => panic!("one answer is not enough"),
        () = host.has_been_asked(17) => assert_eq!(host.times(), 17),
    }
    host.answers.add_permits(1000);
    assert!(all.await.iter().all(Result::is_ok));
}

type Said = UnsyncBoxBody<Bytes, Infallible>;

/// A host that gives every question the same answer, and counts the questions.
fn saying(code: u16, body: impl Fn() -> Said + Clone + Send + 'static) -> (Client, Arc<AtomicUsize>) {
    let asked = Arc::<AtomicUsize>::default();
    let counted = asked.clone();
    let service = tower::service_fn(move |_: Request<Body>| {
        counted.fetch_add(1, SeqCst);
        let response = Response::builder().status(code).body(body()).unwrap();
        async move { Ok::<_, Infallible>(response) }
    });
    (Client::new(service, "default"), asked)
}

/// Whether a host's answers give a user a right, and whether they give a client an identity.
async fn authenticates_and_authorizes(client: Client) -> (bool, bool) {
    let (limiter, ann) = (Arc::new(ReviewLimiter::default()), caller("ann"));
    let authorizer = Authorizer::new(client.clone(), limiter.clone());
    let (reviewer, (x, origin)) = (TokenReviewer::new(client, limiter), (about("x"), origin()));
    let (decision, user) =
        tokio::join!(authorizer.authorize(&ann, &ann.user, &x), reviewer.review("token of ann", &origin));
    (decision.is_ok_and(|decision| decision.allowed), user.is_ok())
}

/// An answer that is no review gives neither a right nor an identity, and the host is not asked again without end.
#[tokio::test(start_paused = true)]
async fn what_is_no_answer_of_the_host_lets_nobody_in() {
    let allows = r#"{"status":{"allowed":true,"authenticated":true,"user":{"username":"ann"}}}"#;
    let wrong = [
        (200, ""),
        (200, "yes"),
        (200, "[]"),
        (200, "{}"),
        (200, r#"{"status":null}"#),
        (200, r#"{"status":{}}"#),
        (200, r#"{"status":{"allowed":"true","authenticated":"true"}}"#),
        (200, &allows[..allows.len() - 1]),
        (302, allows),
        (404, allows),
        (429, allows),
        (500, allows),
        (503, allows),
    ];
    let tried = wrong.map(async |(code, body)| {
        let body = body.as_bytes().to_vec();
        let (client, asked) = saying(code, move || Full::from(body.clone()).boxed_unsync());
        (authenticates_and_authorizes(client).await, asked.load(SeqCst), code)
    });
    for ((in_by, asked, code), (_, body)) in join_all(tried).await.into_iter().zip(wrong) {
        assert_eq!(in_by, (false, false), "{code} {body}");
        assert!(asked <= 10, "{code} {body}: {asked} questions");
    }
    let right = saying(201, move || Full::from(allows).boxed_unsync());
    assert_eq!(authenticates_and_authorizes(right.0).await, (true, true));
}

/// An answer without an end took memory for as long as the host sent it.
#[tokio::test]
async fn an_answer_without_end_is_read_up_to_a_bound() {
    const PIECE: usize = 16 << 10;
    let given = Arc::<AtomicUsize>::default();
    let pieces = given.clone();
    let endless = move || {
        let pieces = pieces.clone();
        let piece = move || {
            pieces.fetch_add(PIECE, SeqCst);
            Ok(Frame::data(Bytes::from_static(&[b' '; PIECE])))
        };
        StreamBody::new(futures::stream::repeat_with(piece)).boxed_unsync()
    };
    assert_eq!(authenticates_and_authorizes(saying(200, endless).0).await, (false, false));
    assert!(given.load(SeqCst) <= 256 << 10, "{} bytes were read", given.load(SeqCst));
}
