//! Discovery and OpenAPI of two versions of one group.

use drydock_machinery::discovery::storage_version_hash;
use serde_json::{Value, json};

use super::{server, v1alpha1};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[tokio::test]
async fn the_group_prefers_the_newer_version() {
    let server = server().await;
    let version =
        |version: &str| json!({"groupVersion": format!("wardle.example.com/{version}"), "version": version});
    let versions = json!([version("v1beta1"), version("v1alpha1")]);
    let group = server.get("/apis/wardle.example.com").await.expect(200);
    assert_eq!((&group["versions"], &group["preferredVersion"]), (&versions, &version("v1beta1")));
    let groups = server.get("/apis").await.expect(200);
    assert_eq!(groups["groups"].as_array().unwrap().len(), 1);
    assert_eq!(groups["groups"][0]["versions"], versions);
}

#[tokio::test]
async fn each_version_lists_the_resource_with_the_hash_of_the_stored_one() {
    let server = server().await;
    for version in ["v1alpha1", "v1beta1"] {
        let list = server.get(&format!("/apis/wardle.example.com/{version}")).await.expect(200);
        assert_eq!(list["groupVersion"], format!("wardle.example.com/{version}"));
        let resources = list["resources"].as_array().unwrap();
        let names: Vec<_> = resources.iter().map(|resource| resource["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["flunders", "flunders/status"]);
        assert_eq!(resources[0]["storageVersionHash"], storage_version_hash(&v1alpha1::NAMES));
    }
}

#[tokio::test]
async fn aggregated_discovery_has_the_versions_in_their_order() {
    let server = server().await;
    let answer = server.send("GET", "/apis", &[("accept", AGGREGATED)], "").await.expect(200);
    let versions = answer["items"][0]["versions"].as_array().unwrap();
    let names: Vec<_> = versions.iter().map(|version| version["version"].as_str().unwrap()).collect();
    assert_eq!((answer["items"].as_array().unwrap().len(), names), (1, vec!["v1beta1", "v1alpha1"]));
    for version in versions {
        let kind = &version["resources"][0]["responseKind"];
        assert_eq!(
            *kind,
            json!({"group": "wardle.example.com", "version": version["version"], "kind": "Flunder"})
        );
    }
}

/// The names of the properties of a definition.
fn properties(definitions: &Value, name: &str) -> Vec<String> {
    let properties = definitions[format!("com.example.wardle.{name}")]["properties"].as_object();
    properties.unwrap_or_else(|| panic!("{name} in {definitions}")).keys().cloned().collect()
}

#[tokio::test]
async fn each_version_has_a_document_of_its_own() {
    let server = server().await;
    let index = server.get("/openapi/v3").await.expect(200);
    let keys: Vec<_> = index["paths"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["apis/wardle.example.com/v1alpha1", "apis/wardle.example.com/v1beta1"]);
    for (version, other) in [("v1alpha1", "v1beta1"), ("v1beta1", "v1alpha1")] {
        let url = format!("/openapi/v3/apis/wardle.example.com/{version}");
        let document = server.get(&url).await.expect(200);
        let text = document.to_string();
        assert!(text.contains(&format!("com.example.wardle.{version}.FlunderSpec")));
        assert!(!text.contains(&format!("wardle.{other}")) && !text.contains(&format!("/{other}/")), "{url}");
    }
}

#[tokio::test]
async fn both_versions_are_in_the_document_for_the_aggregator() {
    let server = server().await;
    let document = server.get("/openapi/v2").await.expect(200);
    let definitions = &document["definitions"];
    assert_eq!(
        properties(definitions, "v1alpha1.FlunderSpec"),
        ["note", "reference", "referenceType", "tools"]
    );
    assert_eq!(
        properties(definitions, "v1beta1.FlunderSpec"),
        ["fischerReference", "flunderReference", "referenceType", "tools"]
    );
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (_, operation) in item.as_object().unwrap() {
            operations.extend(operation["operationId"].as_str().map(str::to_owned));
        }
        let of_one = ["v1alpha1", "v1beta1"].iter().filter(|version| path.contains(**version)).count();
        assert_eq!(of_one, 1, "{path}");
    }
    let count = operations.len();
    operations.sort();
    operations.dedup();
    assert_eq!((operations.len(), count % 2), (count, 0));
    for version in ["v1alpha1", "v1beta1"] {
        let path = format!("/apis/wardle.example.com/{version}/namespaces/{{namespace}}/flunders");
        let schema = &document["paths"][&path]["post"]["parameters"][0]["schema"]["$ref"];
        assert_eq!(*schema, format!("#/definitions/com.example.wardle.{version}.Flunder"));
    }
}
