//! What a path and a method mean.

use super::*;

fn info(method: &str, uri: &str) -> RequestInfo {
    RequestInfo::parse(&method.parse().unwrap(), &uri.parse().unwrap())
}

#[test]
fn a_path_below_a_group_version_is_a_resource_request() {
    let got = info("GET", "/apis/g.io/v1/namespaces/ns/things/a%20b/status");
    assert!(got.is_resource);
    assert_eq!((got.group.as_str(), got.version.as_str()), ("g.io", "v1"));
    assert_eq!((got.namespace.as_str(), got.resource.as_str()), ("ns", "things"));
    assert_eq!((got.name.as_str(), got.subresource.as_str()), ("a b", "status"));
    assert_eq!(got.verb, Verb::Get);
}

#[test]
fn discovery_paths_are_not_resource_requests() {
    for path in
        ["/", "/apis", "/apis/g.io", "/apis/g.io/v1", "/apis/g.io/v1/", "/healthz", "/openapi/v3/apis/g/v1"]
    {
        let got = info("GET", path);
        assert!(!got.is_resource, "{path}");
        assert_eq!(got.verb, Verb::Other("get".into()));
    }
}

#[test]
fn a_get_without_name_lists_or_watches() {
    assert_eq!(info("GET", "/apis/g/v/things").verb, Verb::List);
    assert_eq!(info("GET", "/apis/g/v/things?watch").verb, Verb::Watch);
    assert_eq!(info("GET", "/apis/g/v/things?watch=FALSE").verb, Verb::List);
    assert_eq!(info("GET", "/apis/g/v/watch/things").verb, Verb::Watch);
    assert_eq!(info("DELETE", "/apis/g/v/things").verb, Verb::DeleteCollection);
    assert_eq!(info("OPTIONS", "/apis/g/v/things").verb, Verb::Other(String::new()));
}

#[test]
fn a_name_selector_becomes_the_name() {
    assert_eq!(info("GET", "/apis/g/v/things?fieldSelector=metadata.name%3Da").name, "a");
    assert_eq!(info("GET", "/apis/g/v/things?watch=1&fieldSelector=x%3Dy,metadata.name%3D%3Da").name, "a");
    assert_eq!(info("GET", "/apis/g/v/things?fieldSelector=metadata.name%21%3Da").name, "");
    assert_eq!(info("GET", "/apis/g/v/things?fieldSelector=metadata.name%3D..").name, "");
}

#[test]
fn selectors_are_kept_raw_for_authorization() {
    let got = info("GET", "/apis/g/v/things?labelSelector=a%3Db+&fieldSelector=%zz");
    assert_eq!(got.label_selector.as_deref(), Some("a=b "));
    assert_eq!(got.field_selector, None);
}

#[test]
fn a_namespace_itself_is_a_resource() {
    let got = info("GET", "/api/v1/namespaces/ns/status");
    assert_eq!((got.resource.as_str(), got.name.as_str()), ("namespaces", "ns"));
    assert_eq!((got.subresource.as_str(), got.namespace.as_str()), ("status", "ns"));
}

#[test]
fn nothing_is_read_of_a_path_that_is_too_long() {
    let of = |length: usize| {
        let start = "/apis/g/v/namespaces/ns/things/";
        info("GET", &format!("{start}{}", "x".repeat(length - start.len())))
    };
    let longest = of(PATH_MAX);
    assert!(longest.is_resource && longest.name.len() > 2_000 && longest.check_path().is_ok());
    let long = of(PATH_MAX + 1);
    assert_eq!((long.is_resource, long.name.as_str(), long.path.len()), (false, "", PATH_MAX));
    assert_eq!(long.check_path().unwrap_err().code(), 404);
    // Wherever it is cut.
    for start in 0..4 {
        let uri = format!("/{}{}", "x".repeat(start), "%F0%9F%98%80".repeat(1_000));
        assert!(info("GET", &uri).path.len() <= PATH_MAX + 2);
    }
}

#[test]
fn authorizers_are_told_of_no_long_selectors() {
    let long =
        |name: &str| info("GET", &format!("/apis/g/v/things?{name}=metadata.name%3D{}", "x".repeat(2_000)));
    let (labels, fields) = (long("labelSelector"), long("fieldSelector"));
    assert_eq!((labels.label_selector, fields.field_selector, fields.name.as_str()), (None, None, ""));
    assert!(fields.query.get("fieldSelector").is_some_and(|selector| selector.len() > 2_000));
}
