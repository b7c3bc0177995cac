//! Which form a client gets by its Accept header.

use super::*;
use http::HeaderValue;

fn with_accept(accept: &str) -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(accept).unwrap())])
}

fn chosen(accept: &str) -> Output {
    document(&with_accept(accept), &Query::default(), true).unwrap()
}

#[test]
fn no_header_means_json() {
    let output = document(&HeaderMap::new(), &Query::default(), false).unwrap();
    assert_eq!(output, Output { format: WireFormat::Json, pretty: false, transform: Transform::None });
}

#[test]
fn the_best_clause_that_can_be_served_wins() {
    assert_eq!(chosen("text/html, application/yaml;q=0.5, */*;q=0.1").format, WireFormat::Yaml);
    assert_eq!(chosen("*/*, application/yaml").format, WireFormat::Yaml);
    assert_eq!(
        chosen("application/json;q=0.4,application/vnd.kubernetes.protobuf").format,
        WireFormat::Protobuf
    );
}

#[test]
fn kubectl_asks_for_a_table_and_gets_it_in_json() {
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
    assert_eq!(chosen(accept).transform, Transform::Table("v1"));
    let protobuf = "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json";
    assert_eq!(chosen(protobuf).transform, Transform::None);
}

#[test]
fn the_garbage_collector_gets_metadata_in_protobuf() {
    let accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let output = chosen(accept);
    assert_eq!((output.format, output.transform), (WireFormat::Protobuf, Transform::Partial("v1")));
}

#[test]
fn what_nobody_produces_is_406() {
    for accept in ["text/html", "application/*", "application/cbor", "nonsense", ","] {
        let refusal = document(&with_accept(accept), &Query::default(), false).unwrap_err();
        assert_eq!(refusal.status.code, 406, "{accept}");
        assert!(refusal.status.message.starts_with("406: Not Acceptable\n\nAvailable representations: "));
    }
    let unknown = with_accept("application/json;as=Unknown;v=v1;g=meta.k8s.io");
    let refusal = document(&unknown, &Query::default(), false).unwrap_err();
    assert!(
        refusal.status.message.starts_with("only the following media types are accepted: application/json,")
    );
}

#[test]
fn yaml_cannot_be_watched() {
    let refusal = stream(&with_accept("application/yaml"), &Query::default()).unwrap_err();
    assert_eq!(
        refusal.status.message,
        "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    );
}

#[test]
fn people_get_indented_json() {
    let curl = HeaderMap::from_iter([(USER_AGENT, HeaderValue::from_static("curl/8"))]);
    assert!(document(&curl, &Query::default(), false).unwrap().pretty);
    assert!(!document(&curl, &Query::parse("pretty=false"), false).unwrap().pretty);
    assert!(document(&HeaderMap::new(), &Query::parse("pretty=true"), false).unwrap().pretty);
}

#[test]
fn errors_fall_back_to_indented_json_and_are_never_transformed() {
    let table = with_accept("application/json;as=Table;v=v1;g=meta.k8s.io");
    assert_eq!(
        error(&table, &Query::default()),
        Output { format: WireFormat::Json, pretty: true, transform: Transform::None }
    );
    assert_eq!(error(&with_accept("application/yaml"), &Query::default()).format, WireFormat::Yaml);
}

const AGGREGATED: &str = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[test]
fn the_first_clause_that_can_be_served_decides_whether_discovery_is_aggregated() {
    let format = |accept: &str| {
        aggregated_discovery(&with_accept(accept), &Query::default()).map(|output| output.format)
    };
    let protobuf = "application/vnd.kubernetes.protobuf";
    assert_eq!(format(&format!("{protobuf};{AGGREGATED},application/json")), Some(WireFormat::Protobuf));
    assert_eq!(format(&format!("*/*;{AGGREGATED}")), Some(WireFormat::Json));
    assert_eq!(format(&format!("application/yaml;{AGGREGATED}")), Some(WireFormat::Yaml));
    assert_eq!(format(&format!("text/html,application/json;{AGGREGATED}")), Some(WireFormat::Json));
    let beta = AGGREGATED.replace("v2", "v2beta1");
    assert_eq!(
        format(&format!("application/json;{beta},application/json;{AGGREGATED}")),
        Some(WireFormat::Json)
    );
    assert_eq!(format(&format!("{protobuf},application/json;{AGGREGATED}")), None);
    assert_eq!(format(&format!("application/json;{beta}")), None);
    assert_eq!(aggregated_discovery(&HeaderMap::new(), &Query::default()), None);
}

#[test]
fn a_document_of_a_version_is_matched_by_its_route_first() {
    let (html, range) = (with_accept("text/html"), with_accept("application/*"));
    assert_eq!(plain(&range, &Query::default()).unwrap().format, WireFormat::Json);
    let refusal = plain(&html, &Query::default()).unwrap_err();
    assert!(refusal.status.message.starts_with("only the following media types are accepted: "));
    for headers in [html, range] {
        let refusal = routed(&headers, &Query::default()).unwrap_err();
        assert_eq!(
            refusal.status.message,
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf"
        );
    }
    let protobuf = with_accept("application/vnd.kubernetes.protobuf");
    assert_eq!(routed(&protobuf, &Query::default()).unwrap().format, WireFormat::Protobuf);
}

#[test]
fn what_is_only_json_is_406_in_other_formats() {
    for accept in ["application/json;q=0.5", "text/html, */*"] {
        only_json(&with_accept(accept)).unwrap();
    }
    only_json(&HeaderMap::new()).unwrap();
    let refusal = only_json(&with_accept("application/yaml")).unwrap_err();
    assert_eq!(refusal.status.message, "406: Not Acceptable\n\nAvailable representations: application/json");
}

#[test]
fn the_best_clause_chooses_among_subtypes() {
    let chosen = |accept: &str| subtype(&with_accept(accept), &["json", "x.v1+protobuf"]);
    assert_eq!(chosen("application/x.v1+protobuf, application/json"), Some(1));
    assert_eq!(chosen("application/x.v1+protobuf;q=0.5, application/json"), Some(0));
    assert_eq!(chosen("text/html, application/*"), Some(0));
    assert_eq!(chosen("application/yaml"), None);
    assert_eq!(subtype(&HeaderMap::new(), &["json"]), Some(0));
}
