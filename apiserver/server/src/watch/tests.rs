//! Tests of how much a watch frames at once, and of the ages that it shows.

use std::cell::Cell;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use drydock_machinery::kind::Now;
use drydock_machinery::table::IncludeObject;
use drydock_serving::wire::negotiate::{Output, Transform};
use drydock_storage::backend::Revision;
use futures::poll;
use serde_json::Value;

use super::*;
use crate::testing::{Counting, kind, objects};

/// A watcher that has all events at once, and then ends.
struct Told(Vec<WatchEvent>);

impl Watcher for Told {
    fn poll_next(&mut self, _: &mut Context<'_>, events: &mut VecDeque<WatchEvent>) -> Poll<bool> {
        if self.0.is_empty() {
            return Poll::Ready(false);
        }
        events.extend(self.0.drain(..));
        Poll::Ready(true)
    }

    fn progress(&self) -> Revision {
        Revision(7)
    }
}

fn options(kind: &Arc<Counting>, output: Output) -> WatchOptions {
    let view = ObjectView { kind: kind.clone(), output, include: IncludeObject::None, now: Now::UNIX_EPOCH };
    let events = objects(48).into_iter().map(WatchEvent::Added).collect();
    WatchOptions {
        view,
        clock: || Now::UNIX_EPOCH,
        bookmarks: false,
        ends: Instant::now() + Duration::from_secs(3600),
        shutdown: CancellationToken::new(),
        counts: WatchEvents::default(),
        recent_frames: Arc::default(),
        watcher: Ok(Box::new(Told(events))),
        initial: false,
        selector: 0,
    }
}

/// A watch as a table framed until a piece was full: 16 KiB of rows, whatever was decoded for them, and the next piece
/// at once.
#[tokio::test]
async fn other_tasks_run_while_a_watch_frames_what_it_has_to_decode() {
    for (format, transform) in [
        (WireFormat::Json, Transform::Table("v1")),
        (WireFormat::Json, Transform::Partial("v1")),
        (WireFormat::Protobuf, Transform::None),
    ] {
        let kind = kind();
        let mut body = response(options(&kind, Output { format, pretty: false, transform })).into_body();
        let (mut before, mut most, mut yields) = (0, 0, 0);
        loop {
            match poll!(pin!(body.frame())) {
                Poll::Ready(None) => break,
                Poll::Ready(Some(_)) => {}
                Poll::Pending => {
                    most = most.max(kind.encoded.load(Relaxed) - before);
                    (before, yields) = (kind.encoded.load(Relaxed), yields + 1);
                    tokio::task::yield_now().await;
                }
            }
        }
        most = most.max(kind.encoded.load(Relaxed) - before);
        assert!(most <= 5 && yields >= 10, "{format:?}, {transform:?}: {most} at once, {yields} yields");
    }
}

/// Ages counted from the beginning of the watch: what was made later was `<invalid>` old.
#[tokio::test]
async fn a_watched_table_tells_ages_at_the_time_of_each_event() {
    thread_local!(static SECONDS: Cell<i64> = const { Cell::new(0) });
    let clock = || Now::from_second(SECONDS.replace(SECONDS.get() + 1)).unwrap();
    let output = Output { format: WireFormat::Json, pretty: false, transform: Transform::Table("v1") };
    let body = response(WatchOptions { clock, ..options(&kind(), output) }).into_body();
    let shown = body.collect().await.unwrap().to_bytes();
    let events = serde_json::Deserializer::from_slice(&shown).into_iter::<Value>();
    let times: Vec<_> = events.map(|event| event.unwrap()["object"]["rows"][0]["cells"][1].clone()).collect();
    assert_eq!(times, (0..48).map(Value::from).collect::<Vec<_>>());
}

#[tokio::test]
async fn plain_json_is_framed_without_a_yield() {
    let (kind, output) =
        (kind(), Output { format: WireFormat::Json, pretty: false, transform: Transform::None });
    let mut body = response(options(&kind, output)).into_body();
    while let Poll::Ready(frame) = poll!(pin!(body.frame())) {
        if frame.is_none() {
            return;
        }
    }
    panic!("a yield");
}
