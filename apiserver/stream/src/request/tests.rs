//! Tests of paths, messages, and the objects that calls read.

use drydock_proto::prost_types::Duration as ProtoDuration;
use tonic::Code;
use tonic_types::StatusExt;

use super::*;

fn path(method: &str) -> String {
    format!("/{SERVICE}/{method}")
}

fn reads(method: &str, message: &impl Message) -> Vec<String> {
    let call = call(&path(method), &message.encode_to_vec()).unwrap();
    let told = |read: ReadAttributes| {
        let verb = match read.name.as_str() {
            _ if read.watch => "watch",
            "" => "list",
            _ => "get",
        };
        format!("{verb} {} {}/{}", read.resource, read.namespace, read.name)
    };
    call.reads().into_iter().map(told).collect()
}

fn refused(method: &str, message: &impl Message) -> Status {
    call(&path(method), &message.encode_to_vec()).unwrap_err()
}

fn evictions(change: impl FnOnce(&mut WatchEvictionsRequest)) -> WatchEvictionsRequest {
    let mut request = WatchEvictionsRequest::default();
    change(&mut request);
    request
}

#[test]
fn every_call_says_what_it_reads() {
    let named = || "a".to_owned();
    assert_eq!(
        reads("GetMaintenance", &GetMaintenanceRequest { name: named() }),
        ["get nodemaintenances /a"]
    );
    let both = |verb: &str| vec![format!("{verb} nodemaintenances /"), format!("{verb} evictionrequests /")];
    assert_eq!(reads("GetNode", &GetNodeRequest { name: named() }), both("list"));
    let get = GetEvictionRequest { namespace: "ns".into(), name: named() };
    assert_eq!(reads("GetEviction", &get), ["get evictionrequests ns/a"]);
    let watch = WatchMaintenancesRequest { maintenance: named(), ..Default::default() };
    assert_eq!(reads("WatchMaintenances", &watch), ["watch nodemaintenances /a"]);
    assert_eq!(
        reads("WatchNodes", &WatchNodesRequest { node: named(), ..Default::default() }),
        both("watch")
    );
    assert_eq!(
        reads("WatchEvictions", &evictions(|r| r.namespace = "ns".into())),
        ["watch evictionrequests ns/"]
    );
    assert_eq!(reads("WatchEvictions", &evictions(|_| {})), ["watch evictionrequests /"]);
}

#[test]
fn a_path_without_a_method_is_unimplemented_and_garbage_is_an_invalid_argument() {
    for strange in ["", "/", "/a.B/C", &path("Get"), &format!("{}/", path("GetNode")), &path("GetNode")[1..]]
    {
        assert_eq!(call(strange, &[]).unwrap_err().code(), Code::Unimplemented, "{strange}");
    }
    let garbage = call(&path("WatchNodes"), &[0xff; 9]).unwrap_err();
    assert_eq!(garbage.code(), Code::InvalidArgument);
    assert_eq!(garbage.get_details_error_info().unwrap().reason, "INVALID_MESSAGE");
}

#[test]
fn a_wrong_field_is_named() {
    let long = "x".repeat(300);
    let interval = |seconds, nanos| {
        let min_update_interval = Some(ProtoDuration { seconds, nanos });
        evictions(|r| r.options = Some(WatchOptions { min_update_interval, ..Default::default() }))
    };
    let token =
        evictions(|r| r.options = Some(WatchOptions { resume_token: "x".into(), ..Default::default() }));
    for (field, status) in [
        ("name", refused("GetMaintenance", &GetMaintenanceRequest::default())),
        ("name", refused("GetNode", &GetNodeRequest { name: "a/b".into() })),
        (
            "namespace",
            refused("GetEviction", &GetEvictionRequest { namespace: String::new(), name: "a".into() }),
        ),
        ("namespace", refused("WatchEvictions", &evictions(|r| r.namespace = "a.b".into()))),
        ("node", refused("WatchEvictions", &evictions(|r| r.node = long.clone()))),
        ("maintenance", refused("WatchEvictions", &evictions(|r| r.maintenance = "A".into()))),
        ("label_selector", refused("WatchEvictions", &evictions(|r| r.label_selector = "a in".into()))),
        ("label_selector", refused("WatchEvictions", &evictions(|r| r.label_selector = long.repeat(20)))),
        ("options.min_update_interval", refused("WatchEvictions", &interval(60, 1))),
        ("options.min_update_interval", refused("WatchEvictions", &interval(-1, 0))),
        ("options.min_update_interval", refused("WatchEvictions", &interval(i64::MIN, i32::MIN))),
        ("options.resume_token", refused("WatchEvictions", &token)),
    ] {
        assert_eq!(status.code(), Code::InvalidArgument, "{field}");
        assert_eq!(status.get_details_bad_request().unwrap().field_violations[0].field, field);
    }
}

#[test]
fn a_token_belongs_to_its_method_and_its_filter() {
    let StatusCall::Watch(Watch { filter, .. }) = call(&path("WatchEvictions"), &[]).unwrap() else {
        panic!("no watch")
    };
    let mut bytes = Vec::new();
    let position = crate::token::Position::START;
    Token { hub: 1, position, floor: 2, filter: filter.digest() }.encode(&mut bytes);
    let options = || Some(WatchOptions { resume_token: bytes.clone().into(), ..Default::default() });
    let same = evictions(|r| r.options = options());
    let Ok(StatusCall::Watch(watch)) = call(&path("WatchEvictions"), &same.encode_to_vec()) else {
        panic!("refused")
    };
    assert_eq!(watch.token.unwrap().floor, 2);
    let other_filter =
        refused("WatchEvictions", &evictions(|r| (r.options, r.only_blocked) = (options(), true)));
    let nodes = WatchNodesRequest { options: options(), ..Default::default() };
    for status in [other_filter, refused("WatchNodes", &nodes)] {
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains("another method or to another filter"), "{}", status.message());
    }
}
