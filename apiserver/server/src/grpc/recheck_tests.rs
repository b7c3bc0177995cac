//! What becomes of open streams when their questions are asked again.

#![allow(clippy::unwrap_used)]

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tonic::Code;

use super::*;
use crate::grpc::body::Ending;
use crate::grpc::streams::{OpenStream, RETRY};

/// Gives the answer that is set, and counts how often it was asked.
#[derive(Clone)]
struct Fake {
    answer: Arc<Mutex<fn() -> RecheckResult>>,
    asked: Arc<watch::Sender<usize>>,
}

#[async_trait]
impl Recheck for Fake {
    async fn ask(&self, _: &StreamCondition) -> RecheckResult {
        let answer = *self.answer.lock();
        let answer = answer();
        self.asked.send_modify(|asked| *asked += 1);
        answer
    }
}

fn fake(answer: fn() -> RecheckResult) -> Fake {
    Fake { answer: Arc::new(Mutex::new(answer)), asked: Arc::new(watch::channel(0).0) }
}

fn yes_for_an_hour() -> RecheckResult {
    RecheckResult::Holds(Instant::now() + Duration::from_secs(3600))
}

fn yes_for_now() -> RecheckResult {
    RecheckResult::Holds(Instant::now())
}

fn no() -> RecheckResult {
    RecheckResult::Refused(Status::permission_denied("no more"))
}

fn question(user: &str, token: &str) -> StreamCondition {
    let user = Arc::new(User { name: user.to_owned(), ..User::default() });
    StreamCondition::Token { token: token.to_owned(), user, origin: Origin::local(LIMIT) }
}

fn open(streams: &Arc<Streams>, token: &str) -> (OpenStream, Arc<Ending>) {
    let ending = Arc::default();
    (streams.open("ann", vec![(question("ann", token), Instant::now())], &ending).unwrap(), ending)
}

fn reviewing(streams: &Arc<Streams>, asker: &Fake) -> AbortOnDropHandle<()> {
    let (streams, asker) = (streams.clone(), asker.clone());
    AbortOnDropHandle::new(tokio::spawn(async move { recheck_streams(&streams, asker).await }))
}

/// Waits until so many questions have been asked.
async fn asked(asker: &Fake, times: usize) {
    asker.asked.subscribe().wait_for(|asked| *asked >= times).await.unwrap();
}

fn code(ending: &Ending) -> Option<Code> {
    let context = std::task::Context::from_waker(std::task::Waker::noop());
    ending.poll(&context).map(Status::code)
}

#[tokio::test]
async fn a_token_of_many_streams_is_reviewed_once() {
    let (streams, asker) = (Arc::<Streams>::default(), fake(yes_for_an_hour));
    let held: Vec<_> = (0..1000).map(|_| open(&streams, "t")).collect();
    let _other = open(&streams, "other");
    let _reviewing = reviewing(&streams, &asker);
    asked(&asker, 2).await;
    assert_eq!(*asker.asked.borrow(), 2);
    assert!(held.iter().all(|(_, ending)| code(ending).is_none()));
}

#[tokio::test]
async fn a_no_ends_every_stream_of_the_question() {
    let (streams, asker) = (Arc::<Streams>::default(), fake(yes_for_now));
    let held: Vec<_> = (0..100).map(|_| open(&streams, "t")).collect();
    let _reviewing = reviewing(&streams, &asker);
    asked(&asker, 2).await;
    assert!(held.iter().all(|(_, ending)| code(ending).is_none()));
    *asker.answer.lock() = no;
    let all = async {
        while held.iter().any(|(_, ending)| code(ending) != Some(Code::PermissionDenied)) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.unwrap();
    assert_eq!(streams.count(), (100, 0), "it is not asked again");
}

#[tokio::test]
async fn a_review_that_cannot_be_made_ends_nothing_and_is_tried_again() {
    let (streams, asker) = (Arc::<Streams>::default(), fake(|| RecheckResult::Unknown));
    let begun = Instant::now();
    let (_stream, ending) = open(&streams, "t");
    let _reviewing = reviewing(&streams, &asker);
    asked(&asker, 1).await;
    assert_eq!(code(&ending), None);
    let (streams, key) = (streams.clone(), question("ann", "t").key());
    let scheduled = async {
        // At that time nothing is due yet.
        while streams.take_due(begun).1.is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), scheduled).await.unwrap();
    streams.settle(&key, RecheckResult::Holds(Instant::now()), Instant::now());
    asked(&asker, 2).await;
    assert_eq!(code(&ending), None);
}

#[tokio::test]
async fn a_review_that_is_throttled_ends_nothing_at_first() {
    let (streams, asker) = (Arc::<Streams>::default(), fake(|| RecheckResult::Throttled));
    let (_stream, ending) = open(&streams, "t");
    let _reviewing = reviewing(&streams, &asker);
    asked(&asker, 1).await;
    assert_eq!(code(&ending), None);
}

#[test]
fn only_a_refusal_of_our_own_budget_is_throttling() {
    assert!(matches!(not_made(&ApiError::too_many_requests("later", 1)), RecheckResult::Throttled));
    assert!(matches!(not_made(&ApiError::service_unavailable("away")), RecheckResult::Unknown));
    assert!(matches!(not_made(&ApiError::internal("the host is away")), RecheckResult::Unknown));
}

/// A question whose review panics must not be left unasked forever.
#[tokio::test]
async fn a_review_that_panics_is_tried_again() {
    let streams = Arc::<Streams>::default();
    let (_stream, _ending) = open(&streams, "t");
    let (key, question) = streams.take_due(Instant::now()).0.pop().unwrap();
    drop(Unanswered { streams: &streams, key, is_answered: false });
    assert!(streams.take_due(Instant::now() + RETRY).0.pop().is_some_and(|(it, _)| it == question.key()));
}

#[test]
fn a_user_is_the_same_with_the_same_groups_in_any_order() {
    let user = |name: &str, groups: &[&str], extra: &str| User {
        name: name.to_owned(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
        extra: [("seen".to_owned(), vec![extra.to_owned()])].into(),
        ..User::default()
    };
    let ann = user("ann", &["a", "b"], "1");
    assert!(user("ann", &["b", "a"], "2").is_same(&ann));
    assert!(!user("ann", &["a"], "1").is_same(&ann));
    assert!(!user("bob", &["a", "b"], "1").is_same(&ann));
}

#[test]
fn another_user_or_token_is_another_question() {
    let keys = [question("ann", "a"), question("ann", "b"), question("bob", "a")].map(|it| it.key());
    assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
    assert_eq!(question("ann", "a").key(), keys[0]);
}

/// The caller, headers and object are the same; in another mode the caller would act as another user.
#[test]
fn another_way_of_acting_as_a_user_is_another_question() {
    let ann = Arc::new(User { name: "ann".to_owned(), ..User::default() });
    let about = |mode| StreamCondition::Impersonation {
        caller: Caller::new(ann.clone(), Origin::local(LIMIT)),
        mode,
        headers: HeaderMap::new(),
        attributes: AuthorizationAttributes::default(),
    };
    assert_ne!(about(ImpersonationMode::ArbitraryNode).key(), about(ImpersonationMode::Legacy).key());
    assert_eq!(about(ImpersonationMode::Legacy).key(), about(ImpersonationMode::Legacy).key());
}
