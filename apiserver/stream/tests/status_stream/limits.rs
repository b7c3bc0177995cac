//! Limits of filters, their entities and the size of a request, and what is left when all clients are gone.

use std::time::Duration;

use drydock_stream::{Config, StatusStream, ViewLimits};
use futures::stream::{FuturesUnordered, StreamExt};
use prost::Message;
use tokio::time::timeout;
use tonic::Code;
use tonic_types::StatusExt;

use crate::client::{Client, Kept, RESPONSE_DEADLINE, Watch, call};
use crate::world::World;

/// A configuration with frequent heartbeats.
pub fn quick() -> Config {
    Config { heartbeat: Duration::from_millis(100), ..Config::default() }
}

fn of_namespace(namespace: &str) -> Watch {
    Watch::evictions(|request| request.namespace = namespace.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_user_cannot_take_all_filters_and_equal_filters_count_once() {
    let views = ViewLimits { views: 3, views_of_user: 2, ..ViewLimits::default() };
    let world = World::with(Config { views, ..Config::default() }).await;
    let open = async |user: &str, namespace: &str| {
        Client::of_user(&world.stream, user, &of_namespace(namespace), Kept::default()).await
    };
    let refused = |client: Result<Client, tonic::Status>| {
        let status = client.err().expect("a refusal");
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(status.get_details_error_info().unwrap().reason, "TOO_MANY_FILTERS");
        status.message().to_owned()
    };
    let _open =
        [open("one", "a").await.unwrap(), open("one", "b").await.unwrap(), open("one", "a").await.unwrap()];
    assert!(refused(open("one", "c").await).starts_with("you watch with too many"));
    let third = open("other", "c").await.unwrap();
    assert!(refused(open("other", "d").await).starts_with("the server follows"));
    // A filter of other users can be used too, and a stream that ended leaves room.
    open("other", "a").await.unwrap();
    drop(third);
    open("other", "d").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entities_in_views_are_bounded() {
    let views = ViewLimits { entries: 5, entries_of_user: 3, ..ViewLimits::default() };
    let world = World::with(Config { views, ..Config::default() }).await;
    for key in ["a/1", "a/2", "b/1"] {
        world.put_eviction(key, |_| {}).await;
    }
    let _a = Client::open(&world.stream, &of_namespace("a")).await.unwrap();
    let all = Client::open(&world.stream, &Watch::evictions(|_| {})).await;
    assert_eq!(all.err().unwrap().code(), Code::ResourceExhausted);
    let _b = Client::open(&world.stream, &of_namespace("b")).await.unwrap();
}

/// Each term is evaluated for each change, in the hub's only task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terms_of_selectors_are_bounded_for_a_user_and_for_all() {
    let views = ViewLimits { terms: 6, terms_of_user: 4, ..ViewLimits::default() };
    let world = World::with(Config { views, ..Config::default() }).await;
    let open = async |user: &str, selector: &str| {
        let watch = Watch::evictions(|request| request.label_selector = selector.to_owned());
        let client = Client::of_user(&world.stream, user, &watch, Kept::default()).await;
        client.map_err(|status| status.code())
    };
    let mut first = open("greedy", "a!=1,b!=1,c!=1").await.unwrap();
    assert_eq!(open("greedy", "a!=2,b!=2").await.err(), Some(Code::ResourceExhausted));
    let _modest = open("modest", "a!=1,b!=1").await.unwrap();
    let _other = open("other", "a!=3,b!=3").await.unwrap();
    assert_eq!(first.end().await.code(), Code::ResourceExhausted);
}

/// Filters that select few entities may select many later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_that_grow_beyond_the_bound_end_the_streams_of_whoever_has_most() {
    let views = ViewLimits { entries: 12, entries_of_user: 8, ..ViewLimits::default() };
    let world = World::with(Config { views, ..Config::default() }).await;
    let mut modest =
        Client::of_user(&world.stream, "modest", &of_namespace("b"), Kept::default()).await.unwrap();
    let selectors = ["!x", "!y", "!z"];
    let mut greedy = Vec::new();
    for selector in selectors {
        let watch = Watch::evictions(|request| request.label_selector = selector.to_owned());
        greedy.push(Client::of_user(&world.stream, "greedy", &watch, Kept::default()).await.unwrap());
    }
    for n in 0..5 {
        world.put_eviction(&format!("a/{n}"), |_| {}).await;
    }
    let ended = futures::future::select_all(greedy.iter_mut().map(|client| Box::pin(client.end()))).await.0;
    assert_eq!(ended.code(), Code::ResourceExhausted, "{ended:?}");
    world.put_eviction("b/1", |_| {}).await;
    modest.until_complete().await;
    while !modest.kept.entities.contains_key("b/1") {
        modest.said().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_too_large_is_refused() {
    let world = World::new().await;
    let large = Watch::evictions(|request| request.label_selector = "x".repeat(80 << 10));
    let refused = Client::open(&world.stream, &large).await.err().unwrap();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_nobody_reads_ends_and_the_next_subscriber_gets_another() {
    let world = World::with(Config { idle_timeout: Duration::ZERO, ..Config::default() }).await;
    let watch = of_namespace("a");
    for _ in 0..3 {
        let mut client = Client::open(&world.stream, &watch).await.unwrap();
        // The hub may end before the first client is counted: the snapshot begins anew at the next hub.
        let mut said = client.until_complete().await;
        said.dedup();
        assert_eq!(said, ["started", "complete"]);
        let kept = client.kept.clone();
        drop(client);
        let mut client = Client::resume(&world.stream, &watch, kept).await.unwrap();
        assert_eq!(client.until_complete().await, ["complete"]);
    }
}

/// Opens a stream, again as often as it is told to.
async fn open(world: &World) -> Client {
    loop {
        match Client::open(&world.stream, &of_namespace("a")).await {
            Ok(client) => return client,
            Err(status) => assert_eq!(status.code(), Code::Unavailable, "{status:?}"),
        }
    }
}

/// After a restart with many objects, everybody was refused until all were read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_waits_for_a_hub_that_is_being_filled_longer_than_for_one_that_is_behind() {
    let attach_timeout = Duration::from_millis(100);
    let world = World::with(Config { attach_timeout, ..Config::default() }).await;
    world.put_eviction("a/1", |_| {}).await;
    world.evictions.hold(true);
    let opening = open(&world);
    tokio::pin!(opening);
    assert!(timeout(3 * attach_timeout, &mut opening).await.is_err(), "it has been answered");
    world.evictions.hold(false);
    let mut client = timeout(RESPONSE_DEADLINE, opening).await.unwrap();
    client.until_complete().await;
    assert!(client.kept.entities.contains_key("a/1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_told_to_try_again_when_the_hub_takes_too_long_to_be_filled() {
    let fill_timeout = Duration::from_millis(100);
    let world = World::with(Config { fill_timeout, ..Config::default() }).await;
    world.evictions.hold(true);
    let refused = Client::open(&world.stream, &of_namespace("a")).await.err().unwrap();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().contains("reads all objects"), "{refused:?}");
    world.evictions.hold(false);
    timeout(RESPONSE_DEADLINE, open(&world)).await.unwrap();
}

/// Each call that waits holds seats: the streams of one tenant could take those of all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_new_calls_wait_for_a_hub_that_is_being_filled() {
    // Those that may wait do so for as long as the test holds the hub up.
    let (fill_timeout, attach_timeout) = (RESPONSE_DEADLINE, RESPONSE_DEADLINE);
    let world = World::with(Config { fill_timeout, attach_timeout, ..Config::default() }).await;
    world.evictions.hold(true);
    let mut waiting: FuturesUnordered<_> =
        (0..65).map(|_| async { Client::open(&world.stream, &of_namespace("a")).await }).collect();
    let first = timeout(RESPONSE_DEADLINE, waiting.next()).await.unwrap().unwrap();
    assert_eq!(first.err().unwrap().code(), Code::Unavailable);
    world.evictions.hold(false);
    while let Some(opened) = waiting.next().await {
        opened.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gzip_is_for_whole_answers_and_never_for_a_stream() {
    let world = World::new().await;
    world.put_eviction("a/1", |_| {}).await;
    let message =
        drydock_proto::status::v1alpha1::GetEvictionRequest { namespace: "a".into(), name: "1".into() };
    let taking_gzip = async |method: &str, message: &[u8]| {
        let mut body = vec![0; 4];
        body.push(u8::try_from(message.len()).unwrap());
        body.extend(message);
        let request = http::Request::post(format!("/drydock.status.v1alpha1.StatusService/{method}"))
            .header("content-type", "application/grpc")
            .header("grpc-accept-encoding", "gzip")
            .body(http_body_util::Full::new(bytes::Bytes::from(body)))
            .unwrap();
        world.stream.call("tester", request, || {}).await
    };
    let whole = taking_gzip("GetEviction", &message.encode_to_vec()).await;
    assert_eq!(whole.headers()["grpc-encoding"], "gzip");
    let stream = taking_gzip("WatchEvictions", &[]).await;
    assert_eq!((stream.status(), stream.headers().get("grpc-encoding")), (http::StatusCode::OK, None));
    let plain = call(&world.stream, "tester", "GetEviction", &message.encode_to_vec()).await;
    assert!(plain.headers().get("grpc-encoding").is_none());
}

#[test]
fn methods_stream_or_do_not_or_do_not_exist() {
    let is_streaming =
        |name: &str| StatusStream::is_streaming(&format!("/drydock.status.v1alpha1.StatusService/{name}"));
    assert_eq!(["GetNode", "WatchNodes", "Other"].map(is_streaming), [Some(false), Some(true), None]);
}
