//! What is mounted where, in which form answers come, and what is refused before a verb is reached.

use serde_json::json;

use crate::fixture::{GADGETS, Server, WIDGETS, gadget};

#[tokio::test]
async fn what_is_not_mounted_is_404() {
    let server = Server::start().await;
    for uri in [
        "/apis/test.io/v1/namespaces/ns/things",
        "/apis/test.io/v2/namespaces/ns/gadgets",
        "/apis/test.io/v1/gadgets/a",
        "/apis/test.io/v1/namespaces/ns/widgets",
        "/apis/test.io/v1/namespaces/ns/gadgets/a/scale",
        "/apis/test.io/v1/namespaces/ns/gadgets/a/status/more",
    ] {
        let error = server.get(uri).await.expect(404);
        assert_eq!(error["message"], "the server could not find the requested resource", "{uri}");
    }
}

#[tokio::test]
async fn what_is_not_served_is_405() {
    let server = Server::start().await;
    for (method, uri) in [
        ("POST", format!("{GADGETS}/a")),
        ("PUT", GADGETS.to_owned()),
        ("PATCH", GADGETS.to_owned()),
        ("DELETE", format!("{GADGETS}/a/status")),
        ("POST", "/apis/test.io/v1/gadgets".to_owned()),
        ("OPTIONS", WIDGETS.to_owned()),
        ("POST", "/apis/test.io/v1/watch/widgets".to_owned()),
    ] {
        let error = server.send(method, &uri, &[], "").await.expect(405);
        assert_eq!(error["reason"], "MethodNotAllowed", "{method} {uri}");
    }
}

#[tokio::test]
async fn answers_and_errors_come_in_the_negotiated_form() {
    let server = Server::start().await;
    server.gadget("a", json!({})).await;
    let uri = format!("{GADGETS}/a");
    let yaml = server.send("GET", &uri, &[("accept", "application/yaml")], "").await;
    assert_eq!(yaml.header("content-type"), ["application/yaml"]);
    assert!(String::from_utf8_lossy(&yaml.body).contains("kind: Gadget\n"));
    let missing = server.send("GET", &format!("{GADGETS}/b"), &[("accept", "application/yaml")], "").await;
    assert!(String::from_utf8_lossy(&missing.body).contains("reason: NotFound"));
    let odd = server.send("GET", &uri, &[("accept", "image/png")], "").await;
    assert_eq!((odd.status, odd.header("content-type")), (406, vec!["application/json".to_owned()]));
    let pretty = server.send("GET", &format!("{uri}?pretty=true"), &[], "").await;
    assert!(pretty.body.starts_with(b"{\n  \""));
}

#[tokio::test]
async fn tables_and_metadata_stand_in_for_objects() {
    let server = Server::start().await;
    let made = server.gadget("a", json!({})).await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = server.send("GET", &format!("{GADGETS}/a"), &[("accept", accept)], "").await.expect(200);
    assert_eq!(
        (table["kind"].as_str(), table["apiVersion"].as_str()),
        (Some("Table"), Some("meta.k8s.io/v1"))
    );
    assert_eq!(table["columnDefinitions"][1]["name"], "Size");
    assert_eq!(table["rows"][0]["cells"], json!(["a", 1]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let partial = server.send("GET", &format!("{GADGETS}/a"), &[("accept", accept)], "").await.expect(200);
    assert_eq!(partial["metadata"], made["metadata"]);
    assert_eq!(partial.get("spec"), None);
    server.send("GET", GADGETS, &[("accept", accept)], "").await.expect(406);
    let accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list = server.send("GET", GADGETS, &[("accept", accept)], "").await.expect(200);
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let odd = server.send("GET", &format!("{GADGETS}?includeObject=Odd"), &table, "").await;
    assert_eq!(odd.status, 400);
}

#[tokio::test]
async fn large_answers_are_compressed_for_those_who_read_it() {
    let server = Server::start().await;
    for i in 0..4 {
        server
            .post(GADGETS, &gadget(&format!("g{i}"), json!({"spec": {"color": "x".repeat(60_000)}})))
            .await
            .expect(201);
    }
    let plain = server.get(GADGETS).await;
    assert_eq!(plain.header("content-encoding").len(), 0);
    let packed = server.send("GET", GADGETS, &[("accept-encoding", "br, gzip")], "").await;
    assert_eq!(packed.header("content-encoding"), ["gzip"]);
    assert_eq!(packed.header("vary"), ["Accept-Encoding"]);
    let mut out = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed.body[..]), &mut out).unwrap();
    assert_eq!(out, plain.body);
    let small = server.send("GET", &format!("{GADGETS}?limit=1"), &[("accept-encoding", "gzip")], "").await;
    assert_eq!(small.header("content-encoding").len(), 0);
}
