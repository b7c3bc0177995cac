//! What the API server gets in a turn, and when.
#![allow(clippy::unwrap_used)]

use drydock_api::eviction_request::Blocked;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::testing::{ApiServer, NAME, client, clock, request};

/// Serves the turn to its end, and returns the entries that were accepted.
async fn served<Work>(
    server: &Arc<Mutex<ApiServer>>,
    act: impl Fn(EvictionTurn) -> Work + Send + Sync + 'static,
) -> Vec<Value>
where
    Work: Future<Output = Result<TurnEnd, String>> + Send + 'static,
{
    let act: Act = Arc::new(move |turn| Box::pin(act(turn)));
    let key = ("ns".to_owned(), "pod-uid".to_owned());
    let task = TurnTask::new(client(server), act, key);
    tokio::time::timeout(Duration::from_secs(24 * 3600), task.serve()).await.unwrap();
    server.lock().accepted.clone()
}

/// Work that takes so long, by the paused clock.
async fn works_for(time: Duration) {
    sleep_until(Instant::now() + time).await;
}

fn done(message: &str) -> Result<TurnEnd, String> {
    Ok(TurnEnd::Done(message.to_owned()))
}

/// Seconds from the start until a time of the entry.
fn since_start(entry: &Value, field: &str) -> i64 {
    let at = |field: &str| entry[field].as_str().unwrap().parse::<Timestamp>().unwrap().as_second();
    at(field) - at("startTime")
}

#[tokio::test(start_paused = true)]
async fn a_long_turn_begins_sends_heartbeats_and_ends() {
    let server = ApiServer::start();
    let entries = served(&server, async |turn: EvictionTurn| {
        turn.set_message("one");
        works_for(Duration::from_secs(400)).await;
        done("all")
    });
    let entries = entries.await;
    assert_eq!(entries.len(), 4, "{entries:#?}");
    let beats: Vec<i64> = entries.iter().map(|entry| since_start(entry, "heartbeatTime")).collect();
    assert!(beats[0] == 0 && (180..185).contains(&beats[1]) && (360..370).contains(&beats[2]), "{beats:?}");
    assert_eq!((&entries[0]["message"], &entries[3]["message"]), (&json!("one"), &json!("all")));
    assert!(entries[2]["completionTime"].is_null());
    assert!((400..402).contains(&since_start(&entries[3], "completionTime")));
}

#[tokio::test(start_paused = true)]
async fn what_is_said_many_times_a_second_is_written_once_a_second() {
    let server = ApiServer::start();
    let entries = served(&server, async |turn: EvictionTurn| {
        for percent in 0..100 {
            turn.set_message(format!("{percent} %"));
            works_for(Duration::from_millis(50)).await;
        }
        done("100 %")
    });
    let entries = entries.await;
    assert!((5..9).contains(&entries.len()), "{entries:#?}");
    assert!(entries.iter().all(|entry| since_start(entry, "heartbeatTime") == 0), "{entries:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_expected_finish_is_written_unless_it_has_passed() {
    let server = ApiServer::start();
    let entries = served(&server, async |turn: EvictionTurn| {
        turn.set_expected_finish(clock().checked_add(SignedDuration::from_secs(60)).ok());
        works_for(Duration::from_secs(5)).await;
        turn.set_expected_finish(clock().checked_sub(SignedDuration::from_secs(60)).ok());
        turn.set_message("late");
        works_for(Duration::from_secs(5)).await;
        turn.set_expected_finish(None);
        works_for(Duration::from_secs(5)).await;
        done("all")
    });
    let entries = entries.await;
    assert!((59..=60).contains(&since_start(&entries[0], "expectedFinishTime")), "{entries:#?}");
    let late = entries.iter().find(|entry| entry["message"] == "late").unwrap();
    assert_eq!(late["expectedFinishTime"], entries[0]["expectedFinishTime"]);
    assert!(entries.last().unwrap()["expectedFinishTime"].is_null(), "{entries:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_blocks_is_written_and_taken_back() {
    let server = ApiServer::start();
    let entries = served(&server, async |turn: EvictionTurn| {
        let blocked = Blocked { reason: "Other".to_owned(), name: "a lock".to_owned(), ..Blocked::default() };
        turn.set_blocked(Some(blocked));
        works_for(Duration::from_secs(5)).await;
        turn.set_blocked(None);
        works_for(Duration::from_secs(5)).await;
        done("all")
    });
    let entries = entries.await;
    assert_eq!((&entries[0]["blocked"]["name"], entries.len()), (&json!("a lock"), 3), "{entries:#?}");
    assert!(entries[1]["blocked"].is_null() && entries[1]["completionTime"].is_null(), "{entries:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_declined_at_once_is_never_begun() {
    let entries =
        served(&ApiServer::start(), async |_| Ok(TurnEnd::Declined("none of mine".to_owned()))).await;
    assert_eq!(entries.len(), 1, "{entries:#?}");
    assert!(entries[0]["startTime"].is_null() && entries[0]["completionTime"].is_string());
    assert_eq!(entries[0]["message"], "none of mine");
}

#[tokio::test(start_paused = true)]
async fn work_that_is_done_at_once_is_not_taken_for_declined() {
    let entries = served(&ApiServer::start(), async |_| done("nothing to save")).await;
    assert!(entries.last().unwrap()["startTime"].is_string(), "{entries:#?}");
}

/// An interceptor that only fails must not keep its turn by heartbeats.
#[tokio::test(start_paused = true)]
async fn failures_are_told_and_tried_again_without_heartbeats() {
    let calls = Arc::new(Mutex::new(0));
    let counted = calls.clone();
    let server = ApiServer::start();
    let entries = served(&server, move |turn: EvictionTurn| {
        let calls = counted.clone();
        async move {
            *calls.lock() += 1;
            let call = *calls.lock();
            assert_eq!(turn.is_resumed(), call > 1);
            works_for(Duration::from_secs(100)).await;
            assert!(call != 2, "a panic is a failure too");
            if call < 5 { Err("the disk is full".to_owned()) } else { done("saved") }
        }
    });
    let entries = entries.await;
    assert_eq!(*calls.lock(), 5);
    let told: Vec<_> =
        entries.iter().filter(|entry| entry["message"] == "failed, trying again: the disk is full").collect();
    assert!(
        !told.is_empty() && told.iter().all(|entry| since_start(entry, "heartbeatTime") == 0),
        "{entries:#?}"
    );
    assert_eq!(entries.last().unwrap()["message"], "saved");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_had_begun_before_is_resumed() {
    let server = ApiServer::start();
    let before = clock().checked_sub(SignedDuration::from_secs(300)).unwrap();
    let before = drydock_api::time::format_seconds(before);
    let entry = json!({"name": NAME, "message": "half", "startTime": before, "heartbeatTime": before});
    server.lock().request = request("own", entry);
    let entries = served(&server, async |turn: EvictionTurn| {
        assert!(turn.is_resumed());
        works_for(Duration::from_secs(10)).await;
        done("whole")
    });
    let entries = entries.await;
    assert_eq!((&entries[0]["message"], &entries[0]["startTime"]), (&json!("half"), &json!(before)));
    assert!(since_start(&entries[0], "heartbeatTime") >= 300, "a heartbeat is due at once: {entries:#?}");
}

#[tokio::test(start_paused = true)]
async fn times_are_those_of_the_api_server() {
    for seconds in [3600, -3600] {
        let server = ApiServer::start();
        server.lock().skew = SignedDuration::from_secs(seconds);
        let entries = served(&server, async |_| done("saved")).await;
        assert!(entries.last().unwrap()["completionTime"].is_string(), "{entries:#?}");
    }
}

/// So answers an aggregator that has just started, to every path of an API that it does not know yet; others answer so
/// in JSON, without a name.
#[tokio::test(start_paused = true)]
async fn an_api_that_is_not_known_yet_does_not_mean_that_the_request_is_gone() {
    let unnamed = r#"{"kind":"Status","status":"Failure","reason":"NotFound","details":{},"code":404}"#;
    let away = Some((503, "shutting down"));
    for unwell in [vec![Some((404, "404 page not found")); 3], vec![Some((404, unnamed)); 3], vec![away; 600]]
    {
        let server = ApiServer::start();
        server.lock().unwell = unwell;
        assert!(!served(&server, async |_| done("saved")).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_is_asked_for_again() {
    let server = ApiServer::start();
    server.lock().unwell = vec![None, Some((200, "{")), None];
    assert!(!served(&server, async |_| done("saved")).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_gone_or_of_another_ends_the_turn() {
    let gone = r#"{"kind":"Status","reason":"NotFound","details":{"name":"pod-uid"},"code":404}"#;
    let server = ApiServer::start();
    server.lock().unwell = vec![Some((404, gone))];
    assert!(served(&server, async |_| done("saved")).await.is_empty());
    server.lock().request["status"]["activeInterceptors"] = json!(["imperative-eviction.k8s.io"]);
    assert!(served(&server, async |_| done("saved")).await.is_empty());
}
