//! Waiting for a permit.

#![allow(clippy::unwrap_used)]

use futures::FutureExt;

use super::super::rate::Rate;
use super::*;

const ANY: Rate = Rate { burst: 1, every: Duration::ZERO };
const BOUNDS: ReviewBounds = ReviewBounds {
    in_flight: 1,
    in_flight_per_payer: 1,
    rate: ANY,
    rate_per_payer: ANY,
    waiting: 2,
    waiting_per_payer: 2,
    joined: 4,
    joined_per_payer: 3,
};

fn by(name: &str) -> PermitRequest {
    PermitRequest { payer: Payer::User(name.into()), connection: 0 }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

#[tokio::test]
async fn a_turn_that_is_dropped_is_the_next_ones() {
    let queue = Arc::new(Queue::new(BOUNDS));
    let first = queue.permit(by("ann"), soon()).await.unwrap();
    let mut second = Box::pin(queue.permit(by("ann"), soon()));
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    drop(second.await.unwrap());
    assert!(queue.permit(by("bob"), soon()).now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn whoever_goes_away_while_waiting_takes_no_turn() {
    let queue = Arc::new(Queue::new(BOUNDS));
    let first = queue.permit(by("ann"), soon()).await.unwrap();
    let (mut second, mut third) =
        (Box::pin(queue.permit(by("bob"), soon())), Box::pin(queue.permit(by("cid"), soon())));
    assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
    drop(first);
    // It has its permit, and does not know it yet.
    drop(second);
    assert!(third.now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn no_more_wait_than_there_is_room_for() {
    let queue = Arc::new(Queue::new(BOUNDS));
    let _first = queue.permit(by("ann"), soon()).await.unwrap();
    let mut waiting = [Box::pin(queue.permit(by("ann"), soon())), Box::pin(queue.permit(by("ann"), soon()))];
    assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()));
    let refused = queue.permit(by("ann"), soon()).now_or_never().unwrap().err().unwrap();
    assert_eq!((refused.code(), refused.retry_after()), (429, Some(1)));
    // Another one has less waiting.
    assert!(queue.permit(by("bob"), soon()).now_or_never().is_none());
}

#[tokio::test]
async fn nobody_waits_longer_than_a_part_of_their_time() {
    let queue = Arc::new(Queue::new(BOUNDS));
    let _first = queue.permit(by("ann"), soon()).await.unwrap();
    let refused = queue.permit(by("ann"), Instant::now() + Duration::from_millis(80)).await.err().unwrap();
    assert_eq!((refused.code(), refused.retry_after()), (429, Some(1)));
}

#[tokio::test]
async fn turns_that_the_pace_holds_up_come_by_themselves() {
    let rate = Rate { burst: 1, every: Duration::from_millis(20) };
    let queue = Arc::new(Queue::new(ReviewBounds { in_flight: 9, in_flight_per_payer: 9, rate, ..BOUNDS }));
    for _ in 0..3 {
        drop(queue.permit(by("ann"), soon()).await.unwrap());
    }
}

/// Thousands of requests with the same unknown token waited for one review, each with its headers, and none was counted.
#[test]
fn no_more_join_a_review_than_there_is_room_for() {
    let queue = Arc::new(Queue::new(BOUNDS));
    let payer = |name: &str| by(name).payer;
    let mut joined: Vec<Joined> = std::iter::from_fn(|| queue.join(&payer("ann")).ok()).take(100).collect();
    assert_eq!(joined.len(), 2, "no more than it leaves free");
    let refused = queue.join(&payer("ann")).err().unwrap();
    assert_eq!((refused.code(), refused.retry_after()), (429, Some(1)));
    joined.push(queue.join(&payer("bob")).unwrap());
    drop(joined);
    assert!(queue.join(&payer("ann")).is_ok());
}
