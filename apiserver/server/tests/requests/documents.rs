//! Discovery and OpenAPI over HTTP.

use serde_json::json;

use crate::fixture::Server;

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
    assert_eq!(server.get("/openapi/v3/apis/test.io/v2").await.status, 404);
}

#[tokio::test]
async fn openapi_v2_is_json_for_those_who_take_it() {
    let server = Server::start().await;
    let answer = server.send("GET", "/openapi/v2", &[("accept", "application/json")], "").await;
    assert_eq!(answer.header("vary"), ["Accept"]);
    assert_eq!(answer.expect(200)["swagger"], "2.0");
    assert_eq!(server.send("GET", "/openapi/v2", &[("accept", "text/html")], "").await.status, 406);
}

#[tokio::test]
async fn a_server_says_who_it_is() {
    let server = Server::start().await;
    assert!(server.get("/version").await.expect(200)["gitVersion"].as_str().unwrap().starts_with('v'));
    let paths = server.get("/").await.expect(200);
    assert!(paths["paths"].as_array().unwrap().contains(&json!("/apis/test.io/v1")));
}
