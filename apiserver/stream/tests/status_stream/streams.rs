//! Tests of the messages of one stream on a running hub.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::time::Duration;

use drydock_proto::status::v1alpha1::{
    GetEvictionRequest, GetEvictionResponse, GetMaintenanceRequest, GetMaintenanceResponse, GetNodeRequest,
    GetNodeResponse, Maintenance, WatchEvictionsRequest, WatchMaintenancesRequest, WatchNodesRequest,
};
use drydock_stream::Config;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use prost::Message;
use serde_json::json;
use tonic::Code;
use tonic_types::StatusExt;

use crate::client::{Client, Frames, RESPONSE_DEADLINE, Said, Watch, get, request};
use crate::world::{World, labelled, on_node, speaks_of};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_comes_first_and_changes_follow() {
    let world = World::new().await;
    world.put_eviction("shop/a", |_| {}).await;
    world.put_eviction("shop/b", |_| {}).await;
    let mut client = Client::open(&world.stream, &Watch::evictions(|_| {})).await.unwrap();
    assert_eq!(client.until_complete().await, ["started", "+shop/a", "+shop/b", "complete"]);
    world.put_eviction("shop/c", |_| {}).await;
    assert_eq!(client.words().await, "+shop/c");
    world.delete_eviction("shop/a").await;
    assert_eq!(client.words().await, "-shop/a");
    world.put_eviction("shop/a", |_| {}).await;
    assert_eq!(client.words().await, "+shop/a");
    assert_eq!(client.kept.entities.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_learns_when_the_whole_snapshot_was_written() {
    let world = World::new().await;
    for n in 0..500 {
        world.put_eviction(&format!("shop/{n:0200}"), |_| {}).await;
    }
    let is_sent = Arc::new(AtomicBool::new(false));
    let sent = is_sent.clone();
    let request = request("WatchEvictions", &WatchEvictionsRequest::default().encode_to_vec());
    let response = world.stream.call("tester", request, move || sent.store(true, SeqCst)).await;
    let mut frames = Frames::new(response).unwrap();
    frames.next().await.unwrap().unwrap();
    assert!(!is_sent.load(SeqCst), "most of it is still to be written");
    for _ in 0..501 {
        frames.next().await.unwrap().unwrap();
    }
    assert!(is_sent.load(SeqCst));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entity_that_leaves_the_filter_is_removed_and_comes_back() {
    let world = World::new().await;
    let only_blocked = Watch::evictions(|request| request.only_blocked = true);
    let team = Watch::evictions(|request| request.label_selector = "team=web".to_owned());
    world.put_eviction("shop/a", on_node("n1", true)).await;
    world.put_eviction("shop/a", labelled("team", "web")).await;
    let mut blocked = Client::open(&world.stream, &only_blocked).await.unwrap();
    let mut labelled_ones = Client::open(&world.stream, &team).await.unwrap();
    assert_eq!(blocked.until_complete().await, ["started", "+shop/a", "complete"]);
    assert_eq!(labelled_ones.until_complete().await, ["started", "+shop/a", "complete"]);
    world.put_eviction("shop/a", on_node("n1", false)).await;
    assert_eq!((blocked.words().await, labelled_ones.words().await), ("-shop/a".into(), "+shop/a".into()));
    world.put_eviction("shop/a", labelled("team", "db")).await;
    assert_eq!(labelled_ones.words().await, "-shop/a");
    world.put_eviction("shop/a", on_node("n1", true)).await;
    assert_eq!(blocked.words().await, "+shop/a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_one_namespace_hears_of_no_other() {
    let world = World::new().await;
    let mut client =
        Client::open(&world.stream, &Watch::evictions(|request| request.namespace = "shop".to_owned()))
            .await
            .unwrap();
    assert_eq!(client.until_complete().await, ["started", "complete"]);
    world.put_eviction("other/a", |_| {}).await;
    world.delete_eviction("other/a").await;
    world.put_eviction("shop/b", |_| {}).await;
    assert_eq!(client.words().await, "+shop/b");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_told_from_both_kinds() {
    let world = World::new().await;
    let mut client = Client::open(&world.stream, &Watch::Nodes(WatchNodesRequest::default())).await.unwrap();
    assert_eq!(client.until_complete().await, ["started", "complete"]);
    world.put_eviction("shop/a", on_node("n1", true)).await;
    world.put_maintenance("m", speaks_of(&["n1"], 2)).await;
    assert_eq!(client.words().await, "+n1");
    world.put_eviction("shop/a", on_node("n1", false)).await;
    // The hub may have seen the eviction before the maintenance.
    while !matches!(client.said().await, Said::Updated(..)) {}
    world.delete_maintenance("m").await;
    while client.kept.entities.contains_key("n1") {
        client.said().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_readers_do_not_see_sends_nothing() {
    let world = World::new().await;
    world.put_maintenance("m", |_| {}).await;
    let watch = Watch::Maintenances(WatchMaintenancesRequest::default());
    let mut client = Client::open(&world.stream, &watch).await.unwrap();
    client.until_complete().await;
    world.put_maintenance("m", |object| object["metadata"]["annotations"] = json!({"a": "b"})).await;
    world.put_maintenance("n", |_| {}).await;
    assert_eq!(client.words().await, "+n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_stream_sends_heartbeats_whose_tokens_move_on() {
    let world = World::with(crate::limits::quick()).await;
    let watch = Watch::evictions(|request| request.namespace = "shop".to_owned());
    let mut client = Client::open(&world.stream, &watch).await.unwrap();
    client.until_complete().await;
    let first = client.kept.token.clone();
    world.put_eviction("other/a", |_| {}).await;
    loop {
        let (token, said) = client.read().await;
        assert_eq!(said, Said::Heartbeat);
        if token != first {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_least_interval_only_the_last_state_comes() {
    let world = World::new().await;
    let mut client = Client::open(&world.stream, &Watch::evictions(|_| {}).every(300)).await.unwrap();
    client.until_complete().await;
    let mut last = None;
    for n in 0..50 {
        world
            .put_eviction("shop/a", move |object| {
                object["spec"]["target"] = json!({"pod": {"name": format!("v{n}"), "uid": "u"}})
            })
            .await;
    }
    let mut updates = 0;
    while last.as_deref() != Some("v49") {
        let Said::Updated(_, message) = client.said().await else { panic!("no update") };
        last =
            Some(<drydock_proto::status::v1alpha1::Eviction as prost::Message>::decode(message).unwrap().pod);
        updates += 1;
    }
    assert!(updates < 50, "{updates} updates of 50 changes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_tells_what_a_stream_tells() {
    let world = World::new().await;
    world.put_maintenance("m", speaks_of(&["n1"], 2)).await;
    world.put_eviction("shop/a", on_node("n1", true)).await;
    let maintenance: GetMaintenanceResponse =
        get(&world.stream, "GetMaintenance", &GetMaintenanceRequest { name: "m".into() }).await.unwrap();
    assert_eq!(maintenance.maintenance.unwrap().pods_pending, 2);
    let request = GetEvictionRequest { namespace: "shop".into(), name: "a".into() };
    let eviction: GetEvictionResponse = get(&world.stream, "GetEviction", &request).await.unwrap();
    assert_eq!(eviction.eviction.unwrap().node, "n1");
    let node: GetNodeResponse =
        get(&world.stream, "GetNode", &GetNodeRequest { name: "n1".into() }).await.unwrap();
    let node = node.node.unwrap();
    assert_eq!((node.progress.len(), node.evictions.unwrap().blocked), (1, 1));
    let mut nodes = Client::open(&world.stream, &Watch::Nodes(WatchNodesRequest::default())).await.unwrap();
    nodes.until_complete().await;
    assert_eq!(nodes.kept.entities["n1"], prost::Message::encode_to_vec(&node));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_not_found_and_says_what_it_was() {
    let world = World::new().await;
    let status = get::<GetNodeResponse>(&world.stream, "GetNode", &GetNodeRequest { name: "n1".into() })
        .await
        .unwrap_err();
    assert_eq!(
        (status.code(), status.get_details_resource_info().unwrap().resource_name),
        (Code::NotFound, "n1".into())
    );
    let request = GetMaintenanceRequest { name: "m".into() };
    let status = get::<GetMaintenanceResponse>(&world.stream, "GetMaintenance", &request).await.unwrap_err();
    let info = status.get_details_error_info().unwrap();
    assert_eq!(
        (status.code(), info.reason.as_str(), info.domain.as_str()),
        (Code::NotFound, "NOT_FOUND", "drydock.status.v1alpha1")
    );
    let strange = get::<GetNodeResponse>(&world.stream, "GetPod", &request).await.unwrap_err();
    assert_eq!(strange.code(), Code::Unimplemented);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_has_every_write_that_was_acknowledged_before_the_call() {
    let world = World::new().await;
    let _running = Client::open(&world.stream, &Watch::evictions(|_| {})).await.unwrap();
    for n in 0..50 {
        let key = format!("shop/{n}");
        world.put_eviction(&key, on_node("n1", true)).await;
        let mut client = Client::open(&world.stream, &Watch::evictions(|request| request.node = "n1".into()))
            .await
            .unwrap();
        client.until_complete().await;
        assert!(client.kept.entities.contains_key(&key), "{key} is missing in the snapshot");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_is_told_and_fades_without_any_write() {
    let now = Arc::new(AtomicI64::new(1_800_000_000));
    let clock = now.clone();
    let world = World::with(Config {
        rate_interval: Duration::ZERO,
        clock: Arc::new(move || Timestamp::from_second(clock.load(SeqCst)).unwrap()),
        ..Config::default()
    })
    .await;
    let evicted = |count: i32| {
        move |object: &mut serde_json::Value| {
            object["status"]["outcomes"] =
                json!({"evicted": count, "canceled": 0, "passedOver": 0, "returned": 0});
        }
    };
    world.put_maintenance("m", speaks_of(&["n1"], 30)).await;
    world.put_maintenance("m", evicted(0)).await;
    let watch = Watch::Maintenances(WatchMaintenancesRequest::default());
    let mut client = Client::open(&world.stream, &watch).await.unwrap();
    client.until_complete().await;
    now.fetch_add(60, SeqCst);
    world.put_maintenance("m", evicted(60)).await;
    let told = async |client: &mut Client, is_wanted: fn(&Maintenance) -> bool| loop {
        let Said::Updated(_, message) = client.said().await else { panic!("no update") };
        let told: Maintenance = prost::Message::decode(message).unwrap();
        if is_wanted(&told) {
            return told;
        }
    };
    let rated = told(&mut client, |told| told.evictions_per_minute.is_some()).await;
    assert_eq!(rated.evictions_per_minute, Some(60.0));
    assert_eq!(rated.estimated_finish_time.unwrap().seconds, now.load(SeqCst) + 30);
    let request = GetMaintenanceRequest { name: "m".into() };
    let got: GetMaintenanceResponse = get(&world.stream, "GetMaintenance", &request).await.unwrap();
    assert_eq!(got.maintenance.unwrap(), rated);
    now.fetch_add(600, SeqCst);
    let faded = told(&mut client, |told| told.evictions_per_minute.is_none()).await;
    assert_eq!(faded.estimated_finish_time, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_tell_of_streams_and_of_what_is_held_for_them() {
    let world = World::new().await;
    world.put_eviction("a/1", |_| {}).await;
    let mut registry = Registry::default();
    world.stream.register(&mut registry);
    let shown = || {
        let mut shown = String::new();
        prometheus_client::encoding::text::encode(&mut shown, &registry).unwrap();
        shown
    };
    let is = |line: &str| shown().lines().any(|it| it == format!("drydock_status_stream_{line}"));
    let until = async |line: &str| {
        while !is(line) {
            tokio::task::yield_now().await;
        }
    };
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = Client::open(&world.stream, &Watch::evictions(|_| {})).await.unwrap();
        client.until_complete().await;
        clients.push(client);
    }
    let all = async {
        for line in ["subscribers 3", "views 1", "view_entities 1"] {
            until(line).await;
        }
        assert!(!is("entity_bytes 0") && !is("messages_total 0"), "{}", shown());
        drop(clients);
        until("subscribers 0").await;
        assert!(is("caught_up_subscribers 0"), "{}", shown());
    };
    tokio::time::timeout(RESPONSE_DEADLINE, all).await.unwrap_or_else(|_| panic!("{}", shown()));
}
