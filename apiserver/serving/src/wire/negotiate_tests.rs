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
