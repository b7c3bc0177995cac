//! Who may open how many streams, and which questions are asked for them.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use drydock_serving::auth::authz::AuthorizationAttributes;
use drydock_serving::auth::{Caller, Origin};
use drydock_serving::request::user::User;
use tonic::{Code, Status};

use super::schedule::THROTTLED;
use super::*;
use super::{MAX_QUESTIONS, MAX_STREAMS};

fn question(name: &str) -> StreamCondition {
    let user = Arc::new(User { name: "ann".to_owned(), ..User::default() });
    let caller = Caller::new(user.clone(), Origin::local(Duration::from_secs(60)));
    let attributes = AuthorizationAttributes {
        resource: "things".into(),
        name: name.to_owned(),
        ..AuthorizationAttributes::default()
    };
    StreamCondition::Access { caller, user, attributes }
}

fn open(streams: &Arc<Streams>, user: &str, names: &[&str]) -> Result<(OpenStream, Arc<Ending>), ApiError> {
    let (due, ending) = (Instant::now(), Arc::default());
    let questions = names.iter().map(|name| (question(name), due)).collect();
    Ok((streams.open(user, questions, &ending)?, ending))
}

fn refused() -> RecheckResult {
    RecheckResult::Refused(Status::permission_denied("no"))
}

#[test]
fn a_user_has_so_many_streams_and_another_one_as_many() {
    let streams = Arc::<Streams>::default();
    let mut held: Vec<_> = (0..MAX_STREAMS).map(|_| open(&streams, "mallory", &["a"]).unwrap()).collect();
    let refused = open(&streams, "mallory", &["a"]).err().unwrap();
    assert_eq!((refused.code(), refused.retry_after()), (429, Some(10)));
    assert!(open(&streams, "ann", &["a"]).is_ok());
    held.pop();
    assert!(open(&streams, "mallory", &["a"]).is_ok());
}

#[test]
fn a_user_has_so_many_different_questions() {
    let streams = Arc::<Streams>::default();
    let names: Vec<String> = (0..MAX_QUESTIONS).map(|number| number.to_string()).collect();
    let held: Vec<_> = names.iter().map(|name| open(&streams, "mallory", &[name]).unwrap()).collect();
    assert_eq!(open(&streams, "mallory", &["new"]).err().unwrap().code(), 429);
    assert!(open(&streams, "mallory", &["0"]).is_ok(), "that one is asked anyway");
    assert!(open(&streams, "ann", &["new"]).is_ok());
    drop(held);
    assert_eq!(streams.count(), (0, 0));
}

#[test]
fn streams_with_the_same_question_have_it_asked_once() {
    let streams = Arc::<Streams>::default();
    let held: Vec<_> = (0..100).map(|_| open(&streams, "ann", &["a", "b", "a"]).unwrap()).collect();
    let now = Instant::now();
    let (due, next) = streams.take_due(now);
    assert_eq!((due.len(), next), (2, None));
    assert!(streams.take_due(now).0.is_empty(), "they are being asked");
    let later = now + Duration::from_secs(10);
    streams.settle(&question("a").key(), RecheckResult::Holds(later), now);
    assert_eq!(streams.take_due(now).1, Some(later));
    streams.settle(&question("b").key(), refused(), now);
    assert!(held.iter().all(|(_, ending)| ending.at().get().is_some()), "each of them needs both");
    drop(held);
    assert_eq!(streams.count(), (0, 0));
}

#[test]
fn a_no_ends_the_streams_that_depend_on_it_and_no_other() {
    let streams = Arc::<Streams>::default();
    let ((_one, ended), (_other, open_on)) =
        (open(&streams, "ann", &["a"]).unwrap(), open(&streams, "ann", &["b"]).unwrap());
    streams.settle(&question("a").key(), refused(), Instant::now());
    let context = std::task::Context::from_waker(std::task::Waker::noop());
    assert_eq!(ended.poll(&context).map(Status::code), Some(Code::PermissionDenied));
    assert!(open_on.poll(&context).is_none());
}

#[test]
fn a_question_is_due_when_the_first_of_its_streams_needs_it() {
    let streams = Arc::<Streams>::default();
    let (now, ending) = (Instant::now(), Arc::default());
    let at = |seconds| now + Duration::from_secs(seconds);
    let open = |due| streams.open("ann", vec![(question("a"), due)], &ending).unwrap();
    let (_late, early, _later) = (open(at(9)), open(at(3)), open(at(5)));
    assert_eq!(streams.take_due(now).1, Some(at(3)));
    drop(early);
    let (due, next) = streams.take_due(at(3));
    assert_eq!((due.len(), next), (1, None), "it is one question");
    let _meanwhile = open(at(4));
    assert!(streams.take_due(at(100)).0.is_empty(), "it is being asked");
    streams.settle(&question("a").key(), RecheckResult::Holds(at(13)), at(4));
    assert_eq!(streams.take_due(at(12)).1, Some(at(13)));
}

#[test]
fn streams_whose_reviews_are_throttled_for_long_end_and_one_answer_begins_the_time_anew() {
    let streams = Arc::<Streams>::default();
    let (now, key) = (Instant::now(), question("a").key());
    let (_stream, ending) = open(&streams, "ann", &["a"]).unwrap();
    let is_open = || ending.at().get().is_none();
    let throttled = |after: Duration| streams.settle(&key, RecheckResult::Throttled, now + after);
    let almost = THROTTLED - Duration::from_millis(1);
    throttled(Duration::ZERO);
    throttled(almost);
    assert!(is_open());
    streams.settle(&key, RecheckResult::Holds(now), now);
    throttled(THROTTLED);
    throttled(THROTTLED + almost);
    assert!(is_open(), "it was answered in between");
    // A review that could not be made is no answer.
    streams.settle(&key, RecheckResult::Unknown, now);
    throttled(2 * THROTTLED);
    let context = std::task::Context::from_waker(std::task::Waker::noop());
    assert_eq!(ending.poll(&context).map(Status::code), Some(Code::ResourceExhausted));
}
