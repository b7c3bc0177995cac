//! Events as the host gets them.

#![allow(clippy::unwrap_used)]

use drydock_api::eviction_request::EvictionRequest;
use parking_lot::Mutex;
use serde_json::Value;

use super::super::EventRecorder;
use crate::metrics::Metrics;
use crate::testing;

use super::*;

/// A recorder with its writer, on a host that answers each write with `code`; what reached the host; and what was lost.
fn recorder(code: u16) -> (EventRecorder, Arc<Mutex<Vec<Value>>>, CancellationToken) {
    let sent: Arc<Mutex<Vec<Value>>> = Arc::default();
    let log = sent.clone();
    let context = testing::context(move |_, _, body| {
        log.lock().push(body.clone());
        if code == 201 { (201, body) } else { testing::failure(code, "") }
    });
    let recorder = EventRecorder::disconnected(&Metrics::new(), context.clock);
    let stop = CancellationToken::new();
    tokio::spawn(write_events(
        context.client,
        "test",
        recorder.queue.clone(),
        recorder.dropped.clone(),
        context.clock,
        stop.clone(),
    ));
    (recorder, sent, stop)
}

async fn until(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap();
}

/// The namespace of a pod that is drained may be on its way out: each event there is refused with 403.
#[tokio::test]
async fn an_event_that_is_refused_or_fails_is_dropped_counted_and_not_sent_again() {
    for code in [403, 404, 409, 500, 503] {
        let (recorder, sent, _stop) = recorder(code);
        recorder.normal(&EvictionRequest::named("ns", "u"), "First", "one".to_owned());
        until(|| recorder.dropped.get() == 1).await;
        // If the first event were tried again, it would come before this one.
        recorder.normal(&EvictionRequest::named("ns", "v"), "Second", "two".to_owned());
        until(|| recorder.dropped.get() == 2).await;
        let reasons: Vec<Value> = sent.lock().iter().map(|event| event["reason"].clone()).collect();
        assert_eq!(reasons, ["First", "Second"], "{code}");
    }
}

/// A pod's name may have 253 characters; with the time behind it there were 270, and the host refused the event.
#[tokio::test]
async fn the_event_of_an_object_with_a_long_name_has_a_name_that_the_host_takes() {
    let (recorder, sent, _stop) = recorder(201);
    // Its 236th character is a dot, which must not stand before another one.
    let name = format!("{}.{}", "a".repeat(235), "b".repeat(17));
    recorder.normal(&EvictionRequest::named("ns", &name), "R", "m".to_owned());
    recorder.normal(&EvictionRequest::named("ns", "short"), "R", "m".to_owned());
    until(|| sent.lock().len() == 2).await;
    let names: Vec<String> =
        sent.lock().iter().map(|e| e["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    assert!(names[0].len() <= 253 && names[0].starts_with(&"a".repeat(235)), "{}", names[0]);
    assert!(!names[0].contains(".."), "{}", names[0]);
    assert!(names[1].starts_with("short."), "{}", names[1]);
    assert_eq!(sent.lock()[0]["involvedObject"]["name"], name.as_str(), "the object is named in full");
}
