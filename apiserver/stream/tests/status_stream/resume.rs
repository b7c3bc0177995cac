//! Streams that resume: on the same hub, after a restart, on another replica, and after they were too slow.

use drydock_proto::status::v1alpha1::{Node, WatchMaintenancesRequest, WatchNodesRequest};
use drydock_stream::{Config, TombstoneLimit};
use serde_json::json;
use tonic::Code;
use tonic_types::StatusExt;

use crate::client::{Client, Kept, Watch};
use crate::world::{World, on_node, speaks_of};

/// The state of a client that has read the snapshot.
async fn snapshot(world: &World, watch: &Watch) -> Kept {
    let mut client = Client::open(&world.stream, watch).await.unwrap();
    client.until_complete().await;
    client.kept
}

async fn three_evictions() -> World {
    let world = World::new().await;
    for key in ["shop/a", "shop/b", "shop/c"] {
        world.put_eviction(key, on_node("n1", true)).await;
    }
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_comes_back_gets_what_it_missed_and_no_more() {
    let world = three_evictions().await;
    let watch = Watch::evictions(|_| {});
    let kept = snapshot(&world, &watch).await;
    world.delete_eviction("shop/a").await;
    world.put_eviction("shop/b", on_node("n2", true)).await;
    for stream in [world.stream.clone(), world.restarted(), world.replica().await] {
        let mut client = Client::resume(&stream, &watch, kept.clone()).await.unwrap();
        assert_eq!(client.until_complete().await, ["-shop/a", "+shop/b", "complete"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_left_the_filter_meanwhile_is_removed_even_if_it_changed_again_later() {
    let world = three_evictions().await;
    let watch = Watch::evictions(|request| request.only_blocked = true);
    let kept = snapshot(&world, &watch).await;
    world.put_eviction("shop/a", on_node("n1", false)).await;
    world.put_eviction("shop/a", on_node("n2", false)).await;
    for stream in [world.stream.clone(), world.restarted(), world.replica().await] {
        let mut client = Client::resume(&stream, &watch, kept.clone()).await.unwrap();
        assert_eq!(client.until_complete().await, ["-shop/a", "complete"]);
        // The view exists by now: a client that uses it must get the removal too.
        let mut client = Client::resume(&stream, &watch, kept.clone()).await.unwrap();
        world.put_eviction("shop/a", on_node("n3", false)).await;
        assert_eq!(client.until_complete().await, ["-shop/a", "complete"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_is_told_although_the_name_was_taken_again() {
    let world = three_evictions().await;
    let watch = Watch::evictions(|request| request.only_blocked = true);
    let kept = snapshot(&world, &watch).await;
    world.delete_eviction("shop/a").await;
    world.put_eviction("shop/a", on_node("n1", false)).await;
    for stream in [world.stream.clone(), world.restarted(), world.replica().await] {
        let mut client = Client::resume(&stream, &watch, kept.clone()).await.unwrap();
        assert_eq!(client.until_complete().await, ["-shop/a", "complete"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_missed_by_who_stopped_in_the_middle_of_the_snapshot() {
    let world = three_evictions().await;
    let watch = Watch::evictions(|_| {});
    let mut client = Client::open(&world.stream, &watch).await.unwrap();
    assert_eq!((client.words().await, client.words().await), ("started".into(), "+shop/a".into()));
    let kept = client.kept.clone();
    drop(client);
    world.delete_eviction("shop/a").await;
    let mut client = Client::resume(&world.stream, &watch, kept).await.unwrap();
    assert_eq!(client.until_complete().await, ["+shop/b", "+shop/c", "-shop/a", "complete"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maintenances_are_sent_anew_by_another_hub_and_nodes_begin_anew() {
    let world = World::new().await;
    world.put_maintenance("m", speaks_of(&["n1"], 1)).await;
    world.put_maintenance("gone", |_| {}).await;
    let maintenances = Watch::Maintenances(WatchMaintenancesRequest::default());
    let nodes = Watch::Nodes(WatchNodesRequest::default());
    let of_maintenances = snapshot(&world, &maintenances).await;
    let of_nodes = snapshot(&world, &nodes).await;
    // Nothing has changed, so any hub can resume.
    let restarted = world.restarted();
    let mut client = Client::resume(&restarted, &nodes, of_nodes.clone()).await.unwrap();
    assert_eq!(client.until_complete().await, ["complete"]);
    world.delete_maintenance("gone").await;
    let restarted = world.restarted();
    let mut client = Client::resume(&restarted, &maintenances, of_maintenances).await.unwrap();
    assert_eq!(client.until_complete().await, ["+m", "-gone", "complete"]);
    let refused = Client::resume(&restarted, &nodes, of_nodes).await.err().unwrap();
    assert_eq!(refused.code(), Code::OutOfRange);
    assert_eq!(refused.get_details_error_info().unwrap().reason, "RESUME_TOKEN_EXPIRED");
    assert!(refused.message().contains("without options.resume_token"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_client_continues_with_what_is_current() {
    let world = three_evictions().await;
    let mut client = Client::open(&world.stream, &Watch::evictions(|_| {})).await.unwrap();
    client.until_complete().await;
    for n in 0..100 {
        world.put_eviction("shop/a", on_node(&format!("n{n}"), true)).await;
    }
    world.delete_eviction("shop/b").await;
    world.put_eviction("shop/z", |_| {}).await;
    let mut words = Vec::new();
    while words.last().is_none_or(|last| last != "+shop/z") {
        words.push(client.words().await);
    }
    let told_of_a = words.iter().filter(|word| *word == "+shop/a").count();
    assert!(told_of_a < 100, "{told_of_a} states of an entity for a reader who did not read");
    assert!(words.contains(&"-shop/b".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_too_slow_for_the_removals_begins_anew() {
    let tombstones = TombstoneLimit { count: 2, bytes: 1 << 20 };
    let world = World::with(Config { tombstones, ..Config::default() }).await;
    for n in 0..6 {
        world.put_eviction(&format!("shop/{n}"), |_| {}).await;
    }
    let watch = Watch::evictions(|_| {});
    let mut slow = Client::open(&world.stream, &watch).await.unwrap();
    slow.until_complete().await;
    let kept = slow.kept.clone();
    let mut quick = Client::open(&world.stream, &watch).await.unwrap();
    quick.until_complete().await;
    for n in 0..5 {
        world.delete_eviction(&format!("shop/{n}")).await;
    }
    world.put_eviction("shop/last", |_| {}).await;
    while !quick.kept.entities.contains_key("shop/last") {
        quick.said().await;
    }
    assert_eq!(slow.until_complete().await, ["started", "+shop/5", "+shop/last", "complete"]);
    assert_eq!(slow.kept.entities, quick.kept.entities);
    let refused = Client::resume(&world.stream, &watch, kept).await.err().unwrap();
    assert_eq!(refused.code(), Code::OutOfRange);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_a_store_that_went_back_is_too_old() {
    let world = three_evictions().await;
    let watch = Watch::evictions(|_| {});
    let kept = snapshot(&world, &watch).await;
    let other = World::new().await;
    let refused = Client::resume(&other.stream, &watch, kept).await.err().unwrap();
    assert_eq!(refused.code(), Code::OutOfRange);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_go_on_when_a_watch_ends() {
    let world = three_evictions().await;
    world.put_maintenance("m", speaks_of(&["n1"], 1)).await;
    let (evictions, nodes) = (Watch::evictions(|_| {}), Watch::Nodes(WatchNodesRequest::default()));
    let mut of_evictions = Client::open(&world.stream, &evictions).await.unwrap();
    let mut of_nodes = Client::open(&world.stream, &nodes).await.unwrap();
    of_evictions.until_complete().await;
    of_nodes.until_complete().await;
    // The next hub can know only from history what changes while the watch is silent.
    world.evictions.hold(true);
    world.delete_eviction("shop/a").await;
    world.put_eviction("shop/d", on_node("n1", true)).await;
    world.evictions.fail();
    world.evictions.hold(false);
    assert_eq!(of_evictions.until_complete().await, ["-shop/a", "+shop/d", "complete"]);
    assert_eq!(of_nodes.until_complete().await, ["started", "+n1", "complete"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_right_on_another_hub_although_one_watch_was_behind() {
    let world = three_evictions().await;
    world.put_maintenance("m", speaks_of(&["n1"], 1)).await;
    let nodes = Watch::Nodes(WatchNodesRequest::default());
    let (replica, _) = world.shaky_replica().await;
    let running = Client::open(&replica, &nodes).await.unwrap();
    let mut client = Client::open(&world.stream, &nodes).await.unwrap();
    client.until_complete().await;
    // This hub sees the second change, and not the first one.
    world.evictions.hold(true);
    world.delete_eviction("shop/a").await;
    world.put_maintenance("other", speaks_of(&["n2"], 2)).await;
    assert_eq!(client.words().await, "+n2");
    let mut client = Client::resume(&replica, &nodes, client.kept.clone()).await.unwrap();
    assert_eq!(client.until_complete().await, ["+n1", "+n2", "complete"]);
    let node: Node = prost::Message::decode(client.kept.entities["n1"].clone()).unwrap();
    assert_eq!(node.evictions.unwrap().blocked, 2);
    drop(running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_of_a_change_says_nothing_of_the_next_one() {
    let world = three_evictions().await;
    let watch = Watch::evictions(|_| {});
    let mut client = Client::open(&world.stream, &watch).await.unwrap();
    client.until_complete().await;
    for key in ["shop/d", "shop/e", "shop/f"] {
        world.put_eviction(key, |_| {}).await;
    }
    assert_eq!((client.words().await, client.words().await), ("+shop/d".into(), "+shop/e".into()));
    let mut client = Client::resume(&world.restarted(), &watch, client.kept.clone()).await.unwrap();
    // The last one may come again.
    let words = client.until_complete().await;
    assert_eq!(words[words.len() - 2..], ["+shop/f", "complete"]);
}

/// The view was made after the entity left the filter, and the entity changed again after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exit_from_before_a_view_was_made_is_told_although_the_entity_changed_since() {
    let world = three_evictions().await;
    let watch = Watch::evictions(|request| request.only_blocked = true);
    let kept = snapshot(&world, &watch).await;
    world.put_eviction("shop/a", on_node("n1", false)).await;
    for stream in [world.restarted(), world.replica().await] {
        let _first = Client::open(&stream, &watch).await.unwrap();
        world.put_eviction("shop/a", on_node("n2", false)).await;
        let mut client = Client::resume(&stream, &watch, kept.clone()).await.unwrap();
        assert_eq!(client.until_complete().await, ["-shop/a", "complete"]);
        world.put_eviction("shop/a", on_node("n3", false)).await;
    }
}

/// Storage has no removal of it, so a client would keep it forever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_be_read_no_more_is_forgotten_by_whoever_resumes_at_the_next_hub() {
    let world = three_evictions().await;
    let watch = Watch::evictions(|_| {});
    let kept = snapshot(&world, &watch).await;
    world.put_eviction("shop/a", |object| object["spec"]["requesters"] = json!("nobody")).await;
    let restarted = world.restarted();
    let refused = Client::resume(&restarted, &watch, kept).await.err().unwrap();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused:?}");
    let mut anew = Client::open(&restarted, &watch).await.unwrap();
    anew.until_complete().await;
    assert_eq!(anew.kept.entities.keys().collect::<Vec<_>>(), ["shop/b", "shop/c"]);
    assert!(Client::resume(&restarted, &watch, anew.kept).await.is_ok(), "this hub has told of nothing else");
}

/// A replica of a newer version may have sent an entity that this one cannot decode. No hub would send its removal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_meets_what_it_cannot_read_takes_nobody_over() {
    let world = three_evictions().await;
    let watch = Watch::evictions(|_| {});
    let kept = snapshot(&world, &watch).await;
    let other = world.replica().await;
    let mut running = Client::open(&other, &watch).await.unwrap();
    running.until_complete().await;
    world.put_eviction("shop/a", |object| object["spec"]["requesters"] = json!("nobody")).await;
    while running.kept.entities.contains_key("shop/a") {
        running.said().await;
    }
    let refused = Client::resume(&other, &watch, kept).await.err().unwrap();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused:?}");
}
