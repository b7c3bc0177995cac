//! Discovery and OpenAPI over HTTP.

use drydock_machinery::protobuf::Envelope;
use serde_json::json;

use crate::fixture::{Answer, Server};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[tokio::test]
async fn discovery_tells_groups_versions_and_resources() {
    let server = Server::start().await;
    let groups = server.get("/apis").await.expect(200);
    assert_eq!(
        (groups["kind"].as_str(), &groups["groups"][0]["name"]),
        (Some("APIGroupList"), &json!("test.io"))
    );
    assert_eq!(server.get("/apis/test.io").await.expect(200)["kind"], "APIGroup");
    let list = server.get("/apis/test.io/v1").await.expect(200);
    let names: Vec<_> = list["resources"].as_array().unwrap().iter().map(|r| r["name"].clone()).collect();
    assert_eq!(names, ["gadgets", "gadgets/status", "widgets", "widgets/status"]);
    assert_eq!(server.get("/apis/test.io/v2").await.status, 404);
    assert_eq!(server.get("/apis/other").await.status, 404);
    assert_eq!(server.send("POST", "/apis", &[], "").await.status, 405);
}

#[tokio::test]
async fn the_aggregator_gets_discovery_in_one_document() {
    let server = Server::start().await;
    let accept = format!(
        "{AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
    );
    let answer = server.send("GET", "/apis", &[("accept", &accept)], "").await;
    assert_eq!(answer.header("content-type"), [AGGREGATED]);
    assert_eq!(
        (answer.header("vary"), answer.header("cache-control")),
        (vec!["Accept".to_owned()], vec!["public".to_owned()])
    );
    let etag = answer.header("etag").remove(0);
    assert_eq!(etag.len(), 130);
    assert_eq!(answer.expect(200)["items"][0]["metadata"]["name"], "test.io");
    let again = server.send("GET", "/apis", &[("accept", &accept), ("if-none-match", &etag)], "").await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let beta = [(
        "accept",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
    )];
    assert_eq!(server.send("GET", "/apis", &beta, "").await.expect(200)["kind"], "APIGroupList");
}

#[tokio::test]
async fn openapi_v3_is_kept_by_its_hash() {
    let server = Server::start().await;
    let index = server.get("/openapi/v3").await.expect(200);
    let url = index["paths"]["apis/test.io/v1"]["serverRelativeURL"].as_str().unwrap();
    let answer = server.get(url).await;
    assert_eq!(answer.header("cache-control"), ["public, immutable"]);
    assert!(answer.header("expires")[0].ends_with(" UTC"));
    let etag = answer.header("etag").remove(0);
    assert!(answer.expect(200)["openapi"].as_str().unwrap().starts_with("3.0"));
    assert_eq!(server.send("GET", url, &[("if-none-match", &etag)], "").await.status, 304);
    let wrong = server.get("/openapi/v3/apis/test.io/v1?hash=00").await;
    assert_eq!((wrong.status, wrong.header("location")), (301, vec![url.to_owned()]));
    let unhashed = server.get("/openapi/v3/apis/test.io/v1").await;
    assert_eq!((unhashed.status, unhashed.header("expires").len()), (200, 0));
    let unknown = server.get("/openapi/v3/apis/test.io/v2").await;
    assert_eq!((unknown.status, unknown.body.len()), (404, 0));
    assert_eq!(server.get("/openapi/v3/").await.status, 404);
}

/// What kube-apiserver 1.36.3 sends with each answer.
#[tokio::test]
async fn openapi_says_on_which_headers_it_depends() {
    let server = Server::start().await;
    let index = server.get("/openapi/v3").await;
    let url = index.json()["paths"]["apis/test.io/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    assert_eq!(index.header("vary").len(), 0);
    let etag = index.header("etag").remove(0);
    let of = async |uri: &str, name: &str, value: &str| server.send("GET", uri, &[(name, value)], "").await;
    for (uri, vary) in
        [("/openapi/v2".to_owned(), &["Accept-Encoding", "Accept"][..]), (url.clone(), &["Accept"])]
    {
        let answer = server.get(&uri).await;
        assert_eq!((answer.status, answer.header("vary")), (200, strings(vary)), "{uri}");
        let etag = answer.header("etag").remove(0);
        let known = of(&uri, "if-none-match", &etag).await;
        assert_eq!((known.status, known.header("vary")), (304, strings(vary)), "{uri}");
        let refused = of(&uri, "accept", "text/html").await;
        assert_eq!((refused.status, refused.header("vary")), (406, strings(vary)), "{uri}");
        assert_eq!((refused.header("cache-control").len(), refused.body.len()), (0, 0), "{uri}");
    }
    let wrong = server.get("/openapi/v3/apis/test.io/v1?hash=00").await;
    assert_eq!((wrong.header("vary"), wrong.header("etag").len()), (strings(&["Accept"]), 1));
    assert_eq!((wrong.header("content-type"), wrong.body.len()), (strings(&["application/json"]), 0));
    let refused = of(&url.replace("hash=", "hash=0"), "accept", "text/html").await;
    assert_eq!(refused.status, 406);
    assert_eq!(of("/openapi/v3", "if-none-match", &etag).await.status, 304);
}

fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

/// The kind that an answer in protobuf names.
fn kind_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 200);
    Envelope::open(&answer.body).unwrap().kind
}

#[tokio::test]
async fn discovery_is_protobuf_for_those_who_prefer_it() {
    let server = Server::start().await;
    let protobuf = "application/vnd.kubernetes.protobuf";
    let first = format!("{protobuf},application/json");
    for (uri, kind) in
        [("/apis", "APIGroupList"), ("/apis/test.io", "APIGroup"), ("/apis/test.io/v1/", "APIResourceList")]
    {
        let answer = server.send("GET", uri, &[("accept", &first)], "").await;
        assert_eq!(answer.header("content-type"), [protobuf], "{uri}");
        assert_eq!(answer.header("vary").len(), 0, "{uri}");
        assert_eq!(kind_of(&answer), kind, "{uri}");
    }
    let parameters = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let json = server.send("GET", "/apis", &[("accept", AGGREGATED)], "").await;
    for format in [protobuf, "application/yaml"] {
        let accept = format!("{format};{parameters},{AGGREGATED}");
        let answer = server.send("GET", "/apis", &[("accept", &accept)], "").await;
        assert_eq!(answer.header("content-type"), [format!("{format};{parameters}")]);
        assert_eq!(
            (answer.header("vary"), answer.header("etag")),
            (strings(&["Accept"]), json.header("etag"))
        );
        match format == protobuf {
            true => assert_eq!(kind_of(&answer), "APIGroupDiscoveryList"),
            false => assert!(answer.body.starts_with(b"apiVersion: apidiscovery.k8s.io/v2\n")),
        }
    }
}

#[tokio::test]
async fn a_document_of_discovery_that_the_client_does_not_accept_is_406() {
    let server = Server::start().await;
    for (uri, message) in [
        ("/apis", "only the following media types are accepted: application/json,"),
        ("/apis/test.io", "only the following media types are accepted: application/json,"),
        ("/apis/test.io/v1", "406: Not Acceptable\n\nAvailable representations: application/json,"),
        ("/version", "406: Not Acceptable\n\nAvailable representations: application/json"),
    ] {
        let refusal = server.send("GET", uri, &[("accept", "text/html")], "").await.expect(406);
        assert!(refusal["message"].as_str().unwrap().starts_with(message), "{uri}: {refusal}");
    }
    let root = server.send("GET", "/", &[("accept", "text/html")], "").await;
    assert_eq!((root.status, root.header("content-type")), (200, strings(&["application/json"])));
}

/// As from kube-apiserver 1.36.3: a Status where go-restful has a route above, the text of Go's own handler elsewhere.
#[tokio::test]
async fn a_path_in_no_group_is_answered_with_text() {
    let server = Server::start().await;
    for uri in [
        "/apis/other.io",
        "/apis/other.io/v1",
        "/apis/other.io/v1/gadgets",
        "/apis/other.io/v1/namespaces/ns/gadgets/a",
        "/apis/test.iox/v1",
        "/api",
        "/api/v1/pods",
        "/openapi",
        "/openapi/v2/",
        "/openapi/v4",
        "/nowhere",
    ] {
        for method in ["GET", "POST"] {
            let answer = server.send(method, uri, &[("accept", "application/yaml")], "").await;
            assert_eq!((answer.status, &*answer.body), (404, &b"404 page not found\n"[..]), "{uri}");
            assert_eq!(answer.header("content-type"), ["text/plain; charset=utf-8"], "{uri}");
            assert_eq!(answer.header("x-content-type-options"), ["nosniff"], "{uri}");
        }
    }
    for uri in
        ["/apis/test.io/v2", "/apis/test.io/v2/", "/apis/test.io/v2/namespaces/ns/gadgets", "/version/x"]
    {
        let error = server.get(uri).await.expect(404);
        assert_eq!(error["message"], "the server could not find the requested resource", "{uri}");
        assert_eq!(error["details"], json!({}), "{uri}");
    }
}

#[tokio::test]
async fn openapi_v2_is_json_for_those_who_take_it() {
    let server = Server::start().await;
    let answer = server.send("GET", "/openapi/v2", &[("accept", "application/json")], "").await;
    assert_eq!(answer.header("vary"), ["Accept-Encoding", "Accept"]);
    assert_eq!(answer.expect(200)["swagger"], "2.0");
    assert_eq!(server.send("GET", "/openapi/v2", &[("accept", "text/html")], "").await.status, 406);
    assert_eq!(server.send("POST", "/openapi/v2", &[], "").await.expect(200)["swagger"], "2.0");
}

#[tokio::test]
async fn a_server_says_who_it_is() {
    let server = Server::start().await;
    assert!(server.get("/version").await.expect(200)["gitVersion"].as_str().unwrap().starts_with('v'));
    let paths = server.get("/").await.expect(200);
    assert!(paths["paths"].as_array().unwrap().contains(&json!("/apis/test.io/v1")));
}

#[tokio::test]
async fn openapi_is_protobuf_for_those_who_prefer_it() {
    let server = Server::start().await;
    for (uri, version) in [("/openapi/v2", "v2"), ("/openapi/v3/apis/test.io/v1", "v3")] {
        let json = server.get(uri).await;
        for separator in [".", "@"] {
            let accept =
                format!("application/com.github.proto-openapi.spec.{version}{separator}v1.0+protobuf,*/*");
            let answer = server.send("GET", uri, &[("accept", &accept)], "").await;
            let media_type = format!("application/com.github.proto-openapi.spec.{version}.v1.0+protobuf");
            assert_eq!((answer.status, answer.header("content-type")), (200, vec![media_type]), "{accept}");
            assert_eq!(answer.header("etag"), json.header("etag"), "{accept}");
            let number = if version == "v2" { &b"\x0a\x032.0"[..] } else { b"\x0a\x053.0.0" };
            assert!(answer.body.starts_with(number), "{}", answer.body.escape_ascii());
        }
        let other = format!(
            "application/com.github.proto-openapi.spec.{}.v1.0+protobuf",
            if version == "v2" { "v3" } else { "v2" }
        );
        assert_eq!(server.send("GET", uri, &[("accept", &other)], "").await.status, 406);
    }
}
